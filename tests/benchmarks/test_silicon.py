"""Blocks of the RTL are as fast on an ECP5 as recorded. One that is another than the recorded one is placed again."""

import pytest

import hw
from benchmarks import silicon
from benchmarks.silicon import HINT, block, changed, measure, page, read, worse
from caesura.fpga import blocks_of_products, elaborated, found
from hw.contract.params import preset

RECORDED = read()
ROW = {
    "fmax_worst": 100.0, "fmax_median": 105.0, "mult": 4, "lut": 1000, "lut_percent": 4.1, "seeds": 3,
    "worst_path": "a.py:1 -> b.py:2",
}  # fmt: skip

tools = pytest.mark.skipif(found("place and route") is None, reason="pip install 'caesura-npu[fpga]'")


@tools
@pytest.mark.parametrize("name", hw.BLOCKS)
def test_a_block_is_as_fast_as_recorded(name):
    netlist = block(name)
    if changed(name, netlist, RECORDED["blocks"]):
        assert name in RECORDED["blocks"], f"{name} was never measured: python -m benchmarks.silicon --write {name}"
        assert worse(name, RECORDED["blocks"][name], measure(netlist)) == [], HINT


def test_every_block_is_recorded_and_no_other():
    assert RECORDED["blocks"].keys() == hw.BLOCKS.keys()
    assert RECORDED["presets"].keys() == silicon.MACHINES.keys()


@pytest.mark.parametrize("name", silicon.MACHINES)
def test_a_machine_that_is_to_fit_a_part_multiplies_no_more_than_recorded(name):
    part, most, clock, _, seeds, _ = silicon.MACHINES[name]
    row = RECORDED["presets"][name]
    assert row["mult"] <= most < part.multipliers and row["lut"] < part.luts
    assert row.get("seeds", 0) == len(seeds) and bool(row.get("fmax_worst")) == bool(seeds)
    assert not seeds or row["fmax_worst"] >= clock
    again = f"python -m benchmarks.silicon --machines --write, and {silicon.PAGE.name} says what each module takes"
    assert blocks_of_products(elaborated(preset(name)).text) <= row["products"], again


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, 0),
        ({"fmax_worst": 94.0, "lut": 1040}, 0),
        ({"fmax_worst": 92.0}, 1),
        ({"fmax_median": 95.0}, 1),
        ({"mult": 5}, 1),
        ({"lut": 1060}, 1),
        ({"fmax_worst": 50.0, "fmax_median": 60.0, "mult": 5, "lut": 2000}, 4),
    ],
)
def test_what_is_worse_than_the_tools_explain_is_told(change, told):
    assert len(worse("one", ROW, {**ROW, **change})) == told


def test_the_command_fails_for_a_block_that_became_slow(monkeypatch, tmp_path, capsys):
    (tmp_path / "silicon.json").write_text('{"presets": {}, "blocks": {}}')
    (tmp_path / "fpga.md").write_text("before\n<!-- silicon -->\n<!-- /silicon -->\nbehind\n")
    monkeypatch.setattr(silicon, "FILE", tmp_path / "silicon.json")
    monkeypatch.setattr(silicon, "PAGE", tmp_path / "fpga.md")
    rows = iter([ROW, {**ROW, "fmax_worst": 80.0}, {**ROW, "fmax_worst": 80.0}])
    monkeypatch.setattr(silicon, "measure", lambda netlist, stages: {**next(rows), "netlist": netlist.digest})
    assert silicon.main(["--write", "requantiser"]) == 0
    assert silicon.main(["requantiser"]) == 0 and "as recorded" in capsys.readouterr().out
    assert silicon.main(["--all", "requantiser"]) == 1
    assert "fmax_worst 100.0 -> 80.0 MHz, must be 93.0: a.py:1 -> b.py:2" in capsys.readouterr().out
    assert silicon.main(["--all", "--write", "requantiser"]) == 0 and silicon.main(["requantiser"]) == 0
    assert "| requantiser | 80.0 | 105.0 | 4 | 1,000 |" in (tmp_path / "fpga.md").read_text()


def test_the_page_shows_what_is_recorded():
    text = silicon.PAGE.read_text()
    assert page(text, RECORDED) == text, "python -m benchmarks.silicon --write writes it"
    slower = {**RECORDED, "blocks": {**RECORDED["blocks"], "mac": {**RECORDED["blocks"]["mac"], "fmax_worst": 1.0}}}
    assert page(text, slower) != text
