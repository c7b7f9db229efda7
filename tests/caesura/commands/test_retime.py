"""``caesura retime``."""

import json

import pytest
from typer.testing import CliRunner

import caesura
from caesura.api import UsageError
from caesura.cli import app
from caesura.commands.retime import read_change, variations
from caesura.samples import random_samples
from hw.contract.isa import Unit
from hw.contract.params import ParamError, preset
from sim.model.bus import ModelBus
from tests.support.networks import DIGITS

TINY = preset("tiny")


def cycles_of_a_run(image, params):
    with caesura.Device(ModelBus(params)) as device:
        return device.load(image).run(random_samples(image, 1, 0)[0])[1].cycles


def test_the_command_runs_a_model_under_each_change():
    arguments = ["--change", "dram_bandwidth=25", "--change", "mac=4,dram_latency=10"]
    result = CliRunner().invoke(app, ["retime", str(DIGITS), *arguments, "--json"])
    assert result.exit_code == 0, result.output
    before, slower, changed = json.loads(result.stdout)["variations"]
    assert (before["change"], before["against_first"]) == ("unchanged", 0)
    assert slower["cycles"] > before["cycles"] and changed["cycles"] > 2 * before["cycles"]
    assert slower["against_first"] == pytest.approx(100 * (slower["cycles"] / before["cycles"] - 1), abs=1e-3)
    assert all(one["seconds"] > 0 for one in (before, slower, changed))
    shown = CliRunner().invoke(app, ["retime", str(DIGITS), "--change", "vec=0"]).stdout
    assert all(one in shown for one in ("unchanged", "vec=0", "seconds", "against the first"))


def test_cycles_are_those_of_runs_on_such_machines():
    image = caesura.compile(DIGITS, TINY)
    slower = TINY.replace(dram_latency=200)
    plain, same, latency = (one.cycles for one in variations(image, ["mac=1,ld2=1", "dram_latency=200"]))
    assert plain == same == cycles_of_a_run(image, TINY) and latency == cycles_of_a_run(image, slower)


def test_what_takes_longer_than_the_image_says_runs_to_its_end():
    image = caesura.compile(DIGITS, TINY)
    plain, slow = (one.cycles for one in variations(image, ["mac=1000,ld2=1000,dram_latency=65535"]))
    assert slow > 100 * plain
    assert all(job.worst_cycles for job in image.meta.jobs)
    assert all(layer.measured_compute is None for layer in image.meta.layers)


def test_changes():
    change = read_change("dram_latency=200, mac=0.5", TINY)
    assert change.params.dram_latency == 200 and change.durations == {Unit.MAC: 0.5}
    for wrong in ("lv2_bytes=4096", "nobody=2", "mac=fast", "mac=-1", "mac=1001", "mac=nan", "mac", ""):
        with pytest.raises(UsageError):
            read_change(wrong, TINY)
    for wrong in ("dram_bandwidth=101", "dram_latency=-4", "dram_latency=99999999", "dram_latency=far"):
        with pytest.raises(ParamError):
            read_change(wrong, TINY)
