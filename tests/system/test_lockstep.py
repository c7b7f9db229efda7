"""The native backend and CXXRTL in lockstep: every register of both in every cycle, whatever the host does.

All is slow, as CXXRTL takes minutes to compile a SoC; ``tests/sim/rtl/test_lockstep.py`` runs on a part of one."""

import itertools
import random

import numpy as np
import pytest

from benchmarks.workloads import workload
from caesura.samples import random_samples
from compiler import golden
from compiler.compile import compile_model
from compiler.plan.options import Options
from hw.contract.bus import HostCosts
from hw.contract.isa import Op
from hw.contract.params import preset
from sim.rtl import open_bus
from sw.driver import Device
from sw.runtime import Session
from tests.hw.soc_bench import DATA_BYTES, END, LV2_BYTES, copy
from tests.support.exhaustive import Task
from tests.support.lockstep import LockstepBus
from tests.support.networks import DIGITS, network
from tests.support.random_preemption import Case, Coverage
from tests.system.test_backends_agree import COSTS, Bench, random_compute, random_copies, random_garbage, traffic

pytestmark = pytest.mark.slow

TINY, BASE = preset("tiny"), preset("base")
TWO_ENGINES = TINY.replace(engines=2)


def lockstep(params, costs=COSTS, kind=LockstepBus):
    return kind(open_bus(params, "native", costs=costs), open_bus(params, "cxxrtl", costs=costs))


class CountsAbandoned(LockstepBus):
    """Counts how often the LD2 unit of any engine was reset for the loads of a prologue that had no fault."""

    abandoned, _resetting = 0, False

    def _compare(self):
        super()._compare()
        controls = [f"soc.engine{engine}.control" for engine in range(self.params.engines)]
        now = any(
            self.value(f"{c}.ld2_share.settled") and not self.value(f"{c}.loader.loaded__failed") for c in controls
        )
        self.abandoned += now and not self._resetting
        self._resetting = now


@pytest.mark.parametrize("seed", range(60))
def test_random_jobs(seed):
    with lockstep(TINY) as bus:
        if seed % 3:
            bus.set_stalls(seed, 60 * (seed % 3))
        traffic(bus, seed)


def random_prologue(rng):
    """Loads long enough to be met by a pause; now and then one beyond a limit."""
    sizes = [rng.randrange(1, 400) for _ in range(3)]
    last = copy(Op.LD2, len=8, src=rng.choice((0, 0, 0, 0, DATA_BYTES)))
    return [*(copy(Op.LD2, len=size, dst=rng.randrange(LV2_BYTES - size)) for size in sizes), last, END]


def pauses_and_resets(bus, seed, rounds):
    """Jobs on every engine, halted, let go on, reset and rung at random times, until a pause met a prologue's loads."""
    rng = random.Random(seed)
    bench, engines = Bench(bus), range(bus.params.engines)
    for engine in engines:
        bus.write_mem(bench.data(engine), rng.randbytes(512), charge=False)
        bench.setup(engine)
    for number in itertools.count():
        if number >= rounds and bus.abandoned:
            break
        assert number < 10 * rounds, "no load was abandoned"
        engine = rng.choice(engines)
        action = rng.randrange(6)
        if action < 2 and bench.jobs[engine] - bench.read("RING_HEAD", engine) < 6:
            body = rng.choice((random_copies, random_compute, random_garbage))(rng)
            prologue = random_prologue(rng) if rng.random() < 0.7 else None
            bench.job([*body, END], prologue, engine)
            bench.ring(engine)
        elif action == 2:
            bench.write("CONTROL", 0b101, engine)
        elif action == 3:
            bench.write("CONTROL", 0b001, engine)
        elif action == 4 and rng.random() < 0.3:
            bench.write("CONTROL", 0b010, engine)
            bus.advance(200)
            bench.code[engine] = 0
            bench.setup(engine)
        else:
            bus.set_stalls(rng.randrange(1, 1000), rng.choice((0, 0, 30, 120, 230)))
        bus.advance(rng.randrange(150))


@pytest.mark.parametrize("params", [TINY, TWO_ENGINES], ids=["tiny", "two_engines"])
@pytest.mark.parametrize("seed", range(24))
def test_pauses_and_resets(params, seed):
    with lockstep(params, kind=CountsAbandoned) as bus:
        pauses_and_resets(bus, seed, 150)


def preemption(params, seeds):
    """Models that preempt each other: dumps, restores, kills, pauses taken back, loads that are abandoned."""
    with lockstep(params, HostCosts()) as bus:
        device, coverage = Device(bus), Coverage()
        settings = [
            (DIGITS, Options(cancel_interval=100, lv2_limit="all")),
            (DIGITS, Options(cancel_interval=300, lv2_limit=params.lv2_bytes // 4)),
            (workload("conv_8x8x8_8_k3_s1_p1"), Options(cancel_interval=200, lv2_limit="all")),
        ]
        images = [compile_model(path, params, engines=params.engines, options=options) for path, options in settings]
        tasks = [Task(device, image, random_samples(image, 1, seed)[0]) for seed, image in enumerate(images)]
        for seed in seeds:
            Case(device, bus, tasks, seed, coverage).run()
        assert coverage.preempted and coverage.dumps


def test_preemption():
    preemption(TINY, range(3))


def test_preemption_on_two_engines():
    preemption(TWO_ENGINES, range(12))


@pytest.mark.parametrize("stalls", [0, 64])
def test_a_model_on_base(stalls):
    path = network("ic_resnet8_int8")
    with lockstep(BASE, HostCosts()) as bus:
        bus.set_stalls(5, stalls)
        device = Device(bus)
        image = compile_model(path, BASE, engines=BASE.engines, options=Options(lv2_limit="all"))
        feed = random_samples(image, 1, 0)[0]
        outputs, stats = Session(device, device.load(image)).run(feed)
        print(f"{stats.cycles:,} cycles, {len(bus.compared)} registers, {len(bus.unmatched)} others")
    for name, value in golden.golden_outputs(path, feed).items():
        np.testing.assert_array_equal(outputs[name], value)
