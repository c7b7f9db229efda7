"""``caesura retime``."""

import json

import pytest
from typer.testing import CliRunner

from caesura.api import UsageError
from caesura.cli import app
from caesura.retime import read_change
from hw.contract.isa import Unit
from hw.contract.params import ParamError, preset
from tests.support.networks import DIGITS

TINY = preset("tiny")


def test_the_command_prices_changes_and_can_check_itself():
    arguments = ["--change", "dram_bandwidth=25", "--change", "mac=4,dram_latency=10", "--check", "--json"]
    result = CliRunner().invoke(app, ["retime", str(DIGITS), *arguments])
    assert result.exit_code == 0, result.output
    before, slower, changed = json.loads(result.stdout)["variations"]
    assert before["error"] == pytest.approx(0, abs=1)
    assert slower["cycles"] > before["cycles"] and abs(slower["error"]) < 3
    assert changed["cycles"] > 2 * before["cycles"] and "error" not in changed
    shown = CliRunner().invoke(app, ["retime", str(DIGITS), "--change", "vec=0"]).stdout
    assert "as recorded" in shown and "vec=0" in shown and "simulated" not in shown


def test_changes():
    change = read_change("dram_latency=200, mac=0.5", TINY)
    assert change.params.dram_latency == 200 and change.durations == {Unit.MAC: 0.5}
    for wrong in ("lv2_bytes=4096", "mac=fast", "mac=-1", "mac", ""):
        with pytest.raises(UsageError):
            read_change(wrong, TINY)
    with pytest.raises(ParamError):
        read_change("dram_bandwidth=101", TINY)
