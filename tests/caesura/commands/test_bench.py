"""``caesura bench`` and ``caesura run --profile`` on the compiled RTL of ``tiny``."""

import csv
import importlib
import io
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from benchmarks import BENCHES, lab, report
from benchmarks.figures import Figure, Target
from benchmarks.lab import Lab
from benchmarks.utilisation import run_detail
from benchmarks.workloads import workload
from caesura.views.progress import Progress
from hw.contract.params import preset
from sim.backends import DEFAULT_BACKEND
from tests.system.command import caesura_command

GEMM, CONV = "gemm_32x32x32", "conv_8x8x8_16_k3_s1_p1"


def measure(name):
    def run(session):
        done = session.run(name)
        return done.utilisation, done.correct, run_detail(done)

    return run


@pytest.fixture
def small(monkeypatch):
    """A benchmark of two small layers."""
    figures = [Figure(GEMM, Target(30, 90), measure(GEMM)), Figure(CONV, Target(99.9, 100), measure(CONV))]
    monkeypatch.setattr(report, "BENCHES", ("small",))
    monkeypatch.setitem(sys.modules, "benchmarks.small", SimpleNamespace(figures=lambda: figures))


def test_csv(small):
    code, out, _ = caesura_command("bench", "small", "--preset", "tiny", "--backend", "model", "--csv")
    gemm, conv = csv.DictReader(io.StringIO(out))
    assert code == 1 and (gemm["name"], gemm["ok"], conv["name"], conv["ok"]) == (GEMM, "True", CONV, "False")
    assert float(gemm["value"]) > 30 and gemm["unit"] == "%" and "cycles" in gemm["explanation"]


def test_json(small):
    code, out, _ = caesura_command("bench", "small", "--preset", "tiny", "--json")
    report = json.loads(out)
    assert code == 1  # the convolution misses what it must reach
    assert list(report) == ["bench", "preset", "backend", "version", "rows"]
    assert (report["bench"], report["preset"], report["backend"]) == ("small", "tiny", DEFAULT_BACKEND)
    for row in report["rows"]:
        assert list(row) == ["name", "value", "unit", "must", "aim", "ok", "detail"]
        detail = row["detail"]
        assert row["value"] == pytest.approx(100 * detail["macs"] / 32 / detail["cycles"], abs=1e-3)
        assert sum(detail["parts"].values()) == pytest.approx(detail["cycles"], abs=5)
        assert detail["counters"]["mac_active"] >= detail["macs"] / 32
        assert detail["bound"]["mac"] == detail["macs"] / 32
        assert detail["correct"] and detail["outputs"] == "all outputs equal onnxruntime's"
    assert [row["ok"] for row in report["rows"]] == [True, False]


def test_table_and_selection(small):
    code, out, _ = caesura_command("bench", "small", "--preset", "tiny", "--only", "gemm_*", "--check")
    assert code == 0
    assert f"small on tiny ({DEFAULT_BACKEND})" in out and "gemm_32x32x32" in out and "conv_8x8x8" not in out


def test_a_wrong_output_is_found(monkeypatch):
    golden = lab.golden.golden_outputs
    monkeypatch.setattr(lab.golden, "golden_outputs", lambda *a: {k: v + 1 for k, v in golden(*a).items()})
    with Progress() as progress, Lab(preset("tiny"), DEFAULT_BACKEND, progress) as session:
        run = session.run(GEMM)
        assert session.run(GEMM) is run
    assert not run.correct and run.verdict == "outputs output differ"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["speed"], "no benchmark named 'speed'; known are utilisation, preemption, simspeed, scheduling"),
        (["simspeed", "--only", "watts"], "no figure matches 'watts'; there are native_over_cxxrtl"),
        (["simspeed", "--preset", "huge"], "no preset named 'huge'"),
        (["simspeed", "--backend", "fpga"], "no backend named 'fpga'"),
    ],
)
def test_user_errors(arguments, message):
    code, out, err = caesura_command("bench", *arguments)
    assert code == 2 and not out
    assert message in err


def test_help_names_every_benchmark():
    code, out, _ = caesura_command("bench", "--help")
    assert code == 0
    assert all(name in out for name in BENCHES)


def test_the_command_line_does_without_the_benchmarks():
    """They are not imported, and where they are not installed, what needs them says so."""
    program = """
import sys
import caesura, caesura.cli, caesura.scenario.rtl
assert not [name for name in sys.modules if name.split(".")[0] == "benchmarks"]
sys.modules["benchmarks"] = None  # as if it were not installed
sys.argv = ["caesura", "bench", "utilisation"]
caesura.cli.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "caesura bench needs the package 'benchmarks'" in " ".join(done.stderr.split())


def test_the_figures_of_the_issue_are_there():
    names = [figure.name for figure in importlib.import_module("benchmarks.utilisation").figures()]
    assert len(set(names)) == len(names)
    for name in (
        "gemm_1024x1024x1024", "gemm_512x512x512", "conv_64x56x56_64_k3_s1_p1", "resnet50_convolutions",
        "resnet50_layers",
        "first_layer",
        "depthwise_stride1", "depthwise_stride2", "resnet50", "mobilenetv2", "squeezenet", "resnet50_speedup_4x",
    ):  # fmt: skip
        assert name in names


def test_run_with_profile():
    path = workload(CONV)
    code, out, _ = caesura_command("run", path, "--preset", "tiny", "--profile", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["profile"]["total"]["cycles"] == report["cycles"]
    layers = report["profile"]["layers"]
    assert [(layer["name"], layer["cycles"]) for layer in layers] == [(CONV, report["layers"][0]["cycles"])]
    assert sum(layer["share"] for layer in layers) == report["cycles"]
    code, out, _ = caesura_command("run", path, "--preset", "tiny", "--profile")
    assert code == 0 and "where the MAC cycles went" in out
    assert "profile" not in json.loads(caesura_command("run", path, "--preset", "tiny", "--json")[1])
