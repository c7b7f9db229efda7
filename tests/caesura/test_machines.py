"""Machines named on the command line: presets, files of parameters, changes to either."""

from pathlib import Path

import pytest

import caesura
from caesura.machines import machine, read_machine
from hw.contract.params import ParamError, preset
from tests.system.command import caesura_command


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text)
    return file


def test_changes_to_a_preset():
    found = machine("base", None, ["engines=4", "lv2_bytes = 4MiB", "dram_latency=1_00"])
    assert found is not None
    assert found.replace(name="base") == preset("base").replace(engines=4, lv2_bytes=4 << 20)
    assert found.name == "base, engines=4, lv2_bytes=4194304, dram_latency=100"


def test_changes_alone_are_to_tiny_and_nothing_is_nothing():
    found = machine(None, None, ["lv1_bytes=32kib"])
    assert found is not None and found.replace(name="tiny") == preset("tiny").replace(lv1_bytes=32 << 10)
    assert machine() is None


def test_a_file_of_parameters(tmp_path):
    file = written(tmp_path, 'preset = "base"\nname = "wide"\nlv2_bytes = "1MiB"\nengines = 1\n')
    assert read_machine(file) == preset("base").replace(name="wide", lv2_bytes=1 << 20, engines=1)
    found = machine(None, file, ["engines=2"])
    assert found is not None and (found.engines, found.name) == (2, "wide, engines=2")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["engine=2"], "no parameter named 'engine'; did you mean engines?"),
        (["name=x"], "no parameter named 'name'"),
        (["engines"], "--set takes NAME=VALUE"),
        (["engines=two"], "engines must be a whole number, such as 4, 65536 or 64KiB, not 'two'"),
        (["engines=2_"], "engines must be a whole number"),
        (["lv2_bytes=" + "9" * 5000], "lv2_bytes must be a whole number"),
        (["engines=9"], "engines must be 1 to 8, not 9"),
        (["rows=8"], "cols must equal rows"),
    ],
)
def test_what_cannot_be_is_refused(changes, said):
    with pytest.raises(ParamError, match=said):
        machine("tiny", None, changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("engines = ", "mine.toml is not a TOML file of parameters"),
        ("engines = 2.5", "mine.toml: engines must be a whole number"),
        ("preset = 3", "mine.toml: preset must be text"),
        ('preset = "huge"', "mine.toml: no preset named 'huge'"),
        ("lv2_bytes = 1000", "mine.toml: .*lv2_bytes must be a power of two"),
    ],
)
def test_a_bad_file_is_named(tmp_path, text, said):
    with pytest.raises(ParamError, match=said):
        read_machine(written(tmp_path, text))


def test_preset_or_file():
    with pytest.raises(ParamError, match="choose one"):
        machine("tiny", Path("mine.toml"))


def test_info_tells_sizes_and_peak(tmp_path):
    code, out, _ = caesura_command("info", "tiny", "--set", "pes=4")
    assert code == 0
    assert "parameters 'tiny, pes=4'" in out
    assert "MACs per cycle" in out and "64" in out
    code, out, _ = caesura_command("info", written(tmp_path, 'preset = "base"'))
    assert code == 0 and "parameters 'mine'" in out
    code, _, err = caesura_command("info", "tiny", "--set", "pes=3")
    assert code == 2 and "pes must be a power of two, not 3" in err


def test_a_changed_machine_compiles_and_its_image_fits_no_other(tmp_path):
    image = tmp_path / "digits.cimg"
    code, out, _ = caesura_command("compile", "examples/digits/digits.onnx", "--set", "lv2_bytes=256KiB", "-o", image)
    assert code == 0 and "for tiny, lv2_bytes=262144" in out
    code, _, err = caesura_command("run", image, "--preset", "tiny")
    assert code == 2 and "built for preset 'tiny, lv2_bytes=262144'" in err


SCENARIO = """
name = "one"
[models.digits]
onnx = "{model}"
[[streams]]
name = "one"
arrivals = {{ kind = "periodic", period = 1, count = 1 }}
stages = [{{ model = "digits" }}]
"""


def test_a_scenario_on_other_hardware(tmp_path, monkeypatch):
    """The fast model needs no simulator of that machine."""
    file = tmp_path / "one.toml"
    file.write_text(SCENARIO.format(model=Path("examples/digits/digits.onnx").resolve()))
    seen, opened = [], caesura.open
    monkeypatch.setattr("caesura.api.open", lambda params, *a, **k: (seen.append(params), opened(params, *a, **k))[1])
    code, _, err = caesura_command("scenario", file, "--backend", "model", "--set", "lv2_bytes=256KiB")
    assert code == 0, err
    assert {params.lv2_bytes for params in seen} == {256 << 10}
    code, _, err = caesura_command("scenario", file, "--backend", "synthetic", "--set", "engines=2")
    assert code == 2 and "choose a --backend" in err
