"""``--vcd`` leaves a waveform file that a reader of the standard format understands."""

import re

import pytest

from hw.contract.params import preset
from tests.support.images import SIZE, copy_image
from tests.system.command import run_report

UNITS = {"ns": 1.0, "ps": 1e-3, "fs": 1e-6}
VARIABLE = re.compile(r"\$var \w+ (\d+) (\S+) (\S+)(?: \[\d+(?::\d+)?\])? \$end")
CHANGE = re.compile(r"([01xz])(\S+)$|b([01xz]+) (\S+)$")


def read_vcd(path):
    """Codes by name, and every change as (time in ns, code, value) in the order of the file."""
    header, _, body = path.read_text().partition("$enddefinitions")
    timescale = re.search(r"\$timescale\s+1\s*(\w+)\s+\$end", header)
    assert timescale
    unit = UNITS[timescale[1]]
    assert header.count("$scope") == header.count("$upscope") > 1
    variables = VARIABLE.findall(header)
    codes = {name: code for _, code, name in variables}  # several names may share a code
    widths = {code: max(1, int(width)) for width, code, _ in variables}
    changes, time = [], 0.0
    for line in body.splitlines()[1:]:
        found = CHANGE.match(line)
        if line.startswith("#"):
            assert int(line[1:]) * unit >= time, "time runs backwards"
            time = int(line[1:]) * unit
        elif found:
            code, value = found[2] or found[4], found[1] or found[3]
            assert len(value) <= widths[code]
            changes.append((time, code, value))
    return codes, changes


@pytest.mark.parametrize("backend", ["pysim", pytest.param("cxxrtl", marks=pytest.mark.slow)])
def test_waveforms_of_a_run(backend, tmp_path):
    path = tmp_path / "run.vcd"
    copy_image(preset("tiny")).save(tmp_path / "copy.cimg")
    report = run_report(tmp_path / "copy.cimg", "--backend", backend, "--vcd", path)
    assert report["layers"][0]["counters"]["st2_bytes"] == SIZE
    codes, changes = read_vcd(path)
    assert "clk" in codes and len(codes) > 1000
    rises = [time for time, code, value in changes if code == codes["irq"] and value == "1"]
    assert rises and report["cycles"] < rises[0] < changes[-1][0], "the interrupt comes once the jobs have run"
    assert changes[-1][0] >= report["latency_cycles"]
