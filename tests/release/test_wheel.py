"""A user's way: the wheel in an environment of its own, far from a checkout."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest

from tests.test_imports import ROOT

pytestmark = pytest.mark.slow

SCRIPT = """
import caesura
from caesura._source.examples.digits import MODEL

image = caesura.compile(MODEL, preset="tiny")
with caesura.open("tiny", backend="model") as device:
    model = device.load(image)
    reveal_type(model)
    reveal_type(model.stats)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of what is in the checkout, without a network."""
    pytest.importorskip("setuptools", minversion="77", reason="pyproject.toml asks for setuptools 77")
    folder = tmp_path_factory.mktemp("wheel")
    skipped = shutil.ignore_patterns("__pycache__", "out", "*.egg-info")
    for name in ("benchmarks", "caesura", "compiler", "examples", "hw", "sim", "sw", "release"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=skipped)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source" / name)
    build = "import sys, setuptools.build_meta as b; print(b.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=folder / "source", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return next(folder.glob("caesura_npu-*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """A Python with the wheel, and with the present environment for what it depends on."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    zipfile.ZipFile(wheel).extractall(paths["purelib"])
    with open(os.path.join(paths["purelib"], "present.pth"), "w") as file:
        file.write(sysconfig.get_paths()["purelib"] + "\n")  # a plain path: its own .pth files are not read
    return folder / "bin" / "python"


def run(python, *arguments, folder):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [python, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def test_the_wheel_has_one_name_and_its_data(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"caesura"}
    for wanted in ("py.typed", "_source/examples/digits/digits.onnx", "_source/examples/scenarios/driving.toml"):
        assert f"caesura/{wanted}" in names


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--version"], "caesura "),
        (["demo", "digits", "--samples", "2"], "2 of 2"),
        (["demo", "encoder", "--samples", "2"], "of 2"),
        (["demo", "driving"], "with preemption"),
        (["demo", "scenario"], "antt"),
    ],
)
def test_commands_work_far_from_a_checkout(python, tmp_path, arguments, wanted):
    done = run(python, "-m", "caesura", *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert wanted in done.stdout


def test_run_compares_a_model_of_an_example(python, tmp_path):
    model = run(python, "-c", "from caesura._source.examples.digits import MODEL; print(MODEL)", folder=tmp_path)
    done = run(python, "-m", "caesura", "run", model.stdout.strip(), "--check", folder=tmp_path)
    assert "check passed" in done.stdout, done.stderr


def test_a_command_that_needs_a_checkout_says_so(python, tmp_path):
    done = run(python, "-m", "caesura", "bench", "stale", folder=tmp_path)
    assert (done.returncode, "needs a checkout of Caesura" in done.stderr) == (2, True)


def test_whatif_compares_machines_anywhere_and_sources_in_a_checkout(python, tmp_path):
    model = run(python, "-c", "from caesura._source.examples.digits import MODEL; print(MODEL)", folder=tmp_path)
    whatif = [python, "-m", "caesura", "whatif", model.stdout.strip()]
    done = run(*whatif, "--set", "lv2_bytes=64KiB", "--backend", "model", folder=tmp_path)
    assert done.returncode == 0 and "outputs: equal" in done.stdout, done.stderr
    for more in ([], ["--against", "HEAD"]):
        done = run(*whatif, *more, folder=tmp_path)
        assert done.returncode == 2 and "in a checkout of Caesura only: say --set" in done.stderr, done.stderr


def test_no_other_package_is_importable(python, tmp_path):
    code = "import caesura, importlib.util as u; print(caesura.__version__, [n for n in {!r} if u.find_spec(n)])"
    done = run(python, "-c", code.format(("hw", "sim", "sw", "compiler", "benchmarks", "examples")), folder=tmp_path)
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_type_checker_sees_types(python, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run(sys.executable, "-m", "mypy", "--python-executable", python, "script.py", folder=tmp_path)
    assert 'Revealed type is "caesura.api.Model"' in done.stdout, done.stdout
    assert "RunStats" in done.stdout
