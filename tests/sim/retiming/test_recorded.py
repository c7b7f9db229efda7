"""A recorded run that is priced again takes as long as a run of the model under the same change."""

import random
from functools import cache

import pytest

from benchmarks.accuracy_cases import random_cases, whole_networks
from compiler.compile import compile_model
from hw.contract.isa import Unit
from hw.contract.params import preset
from hw.contract.regs import engine_reg
from sim.model.bus import ModelBus
from sim.model.pipes import CopyPipe, MacPipe
from sim.retiming.recorded import RecordedRun, cycles_of
from sw.driver import Device

TINY = preset("tiny")
LIMIT = 10_000_000


@cache
def network(name):
    case = next(case for case in whole_networks(TINY) if case.name == name)
    return compile_model(case.path(), TINY, engines=1, name=name)


def run(image, params, pauses=()):
    """The history of one inference with the DRAM of ``params``, paused for a moment at the cycles ``pauses``."""
    bus = ModelBus(image.params, data=False)
    bus.set_dram_timing(params)
    bus.record(bursts=True)
    device = Device(bus)
    model = device.load(image)
    device.begin(model, LIMIT)
    jobs = device.submit(model, range(len(image.meta.jobs)), limit=LIMIT)
    for cycle in pauses:
        bus.advance(cycle - bus.cycle)
        bus.write_reg(engine_reg(0, "CONTROL"), 5)
        bus.write_reg(engine_reg(0, "CONTROL"), 1)
    device.collect(jobs, LIMIT)
    return bus.history


@cache
def recorded(name="mobilenetv2_small"):
    return RecordedRun(TINY, run(network(name), TINY))


def test_with_nothing_changed_every_job_begins_and_ends_when_it_did():
    history = run(network("mobilenetv2_small"), TINY)
    jobs = {job.job_id: job for job in RecordedRun(TINY, history).price().jobs}
    assert len(jobs) == len(history.bodies) > 10
    for body in history.bodies:
        job, times = jobs[body.job.members["job_id"]], body.job.times
        assert (job.start, job.end) == pytest.approx((times["start"], times["end"]), rel=0.002, abs=100)
        assert job.prologue_end == pytest.approx(times["prologue_end"], rel=0.002, abs=100)


CHANGES = [
    {"dram_latency": 10}, {"dram_latency": 300}, {"dram_bandwidth": 30}, {"dram_row_miss": 100},
    {"dram_latency": 90, "dram_bandwidth": 60, "dram_row_miss": 5},
]  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_another_dram(changes):
    params = TINY.replace(**changes)
    expected = cycles_of(run(network("mobilenetv2_small"), params))
    assert expected != recorded().price().cycles
    assert recorded().price(params).cycles == pytest.approx(expected, rel=0.01)


NETWORKS = ["squeezenet_small", "mobilenetv2_small", "resnet50_small", "digits"]


def test_another_dram_on_several_networks():
    """A run of 14,000 cycles may meet one refresh more or less, and two clients that alternate may miss more rows: up
    to 5 % where a row miss costs five times as much (docs/fast-model.md)."""
    errors = {}
    for name in NETWORKS:
        for changes in CHANGES:
            params = TINY.replace(**changes)
            expected = cycles_of(run(network(name), params))
            assert expected != recorded(name).price().cycles
            errors[name, str(changes)] = recorded(name).price(params).cycles / expected - 1
    for (name, changes), error in errors.items():
        assert abs(error) < (0.05 if "'dram_row_miss': 100" in changes else 0.03), (name, changes, error)
    assert sum(map(abs, errors.values())) / len(errors) < 0.005, errors


@pytest.mark.parametrize(
    ("pipe", "units"), [(MacPipe, [Unit.MAC]), (CopyPipe, [Unit.LD1, Unit.ST1, Unit.LD0])], ids=["MAC", "copies"]
)
def test_slower_units(pipe, units, monkeypatch):
    """Against a model whose units take three times as many steps."""
    original, before = pipe.run, recorded().price().cycles

    def slower(self, valid, work):
        longer = {
            name: 3 * getattr(work, name)
            for name in ("steps", "late", "ahead", "period", "last")
            if name in work._fields
        }
        return original(self, valid, work._replace(**longer))

    monkeypatch.setattr(pipe, "run", slower)
    expected = cycles_of(run(network("mobilenetv2_small"), TINY))
    assert expected > 1.05 * before
    assert recorded().price(durations=dict.fromkeys(units, 3)).cycles == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("count", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_random_networks_on_machines_of_no_preset(count):
    """Several engines, short bursts, small queues. One small layer may be a few percent off: bursts that two clients
    offer in the same cycle change places."""
    seed = 11
    rng = random.Random(seed)
    errors = []
    for case in random_cases(count, seed):
        image = compile_model(case.path(), case.params, engines=case.params.engines, name=case.name)
        price = RecordedRun(image.params, run(image, image.params)).price
        params = image.params.replace(
            dram_latency=rng.choice([10, 100, 300]),
            dram_bandwidth=rng.choice([30, 70]),
            dram_row_miss=rng.choice([5, 90]),
        )
        expected = cycles_of(run(image, params))
        errors.append(abs(price(params).cycles / expected - 1))
        assert errors[-1] < 0.08, f"seed {seed}: {case.name} on {case.params.name}: {expected} cycles with {params}"
    assert sum(errors) / len(errors) < 0.02, f"seed {seed}: {errors}"


def test_what_cannot_be_priced_is_refused():
    with pytest.raises(ValueError, match=r"lv1_banks.*record it on that machine"):
        recorded().price(TINY.replace(lv1_banks=4))
    with pytest.raises(ValueError, match="factors of at least 0"):
        recorded().price(durations={Unit.MAC: -1})
    with pytest.raises(ValueError, match="nothing was recorded"):
        RecordedRun(TINY, ModelBus(TINY).history)


def test_a_run_whose_prologues_were_abandoned_is_refused():
    image = network("mobilenetv2_small")
    times = [body.job.times for body in run(image, TINY).bodies]
    _, begin, end = max(
        (one["prologue_end"] - one["prologue_start"], one["prologue_start"], one["prologue_end"]) for one in times
    )
    with pytest.raises(ValueError, match="pauses cannot be retimed"):
        RecordedRun(TINY, run(image, TINY, pauses=[(begin + end) // 2]))
