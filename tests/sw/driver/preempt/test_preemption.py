import numpy as np
import pytest

from hw.contract.bus import HostCosts
from hw.contract.job import Fault
from hw.contract.params import preset
from hw.contract.regs import EngineState
from hw.contract.spaces import Space
from sw.driver import Device, DriverError, OutOfMemory
from sw.driver.errors import SupervisorFault
from sw.driver.queues.engine_queue import EngineQueue
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image

TINY, BASE = preset("tiny"), preset("base")
LIMIT = 10_000_000


def poison(device):
    """The fake SoC's memories start as garbage, so that reading what was not brought back shows."""
    machine = device.bus.machine
    machine.lv2[:] = 0xEE
    for engine in machine.engines:
        engine.lv1[:], engine.acc[:] = 0xDD, 0x0C0C0C0C


def start(device, model, seed=0):
    data = np.random.default_rng(seed).integers(-128, 128, (1, 8, 8)).astype(np.int8)
    model.write_tensor("x", data)
    device.begin(model, LIMIT)
    return data, device.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)


def finish(device, model, data, ids):
    results = device.collect(ids, LIMIT)
    np.testing.assert_array_equal(model.read_tensor("y"), data)
    if model.image.weights:
        base, size = model.segments[4]
        assert device.bus.read_mem(base, size, charge=False) == model.image.weights
    return results


def run(device, model, seed=1):
    return finish(device, model, *start(device, model, seed))


def points(params, jobs):
    return len(walking_image(params, jobs=jobs).meta.cancel_points)


EVERY_POINT = [
    pytest.param(params, jobs, point, id=f"{params.name}-{jobs}-{point}")
    for params in (TINY, BASE)
    for jobs in (1, 2)
    for point in range(-1, points(params, jobs))
]


@pytest.mark.parametrize(("params", "jobs", "point"), EVERY_POINT)
def test_preempted_at_every_point_by_a_model_that_overwrites_everything(soc, params, jobs, point):
    device = Device(soc(params, seed=point, costs=HostCosts.free()))
    poison(device)
    victim = device.load(walking_image(params, jobs=jobs))
    urgent = device.load(smashing_image(params, engines=params.engines))
    data, ids = start(device, victim)
    device.bus.advance(1 if point >= 0 else 0)
    for _ in range(point):
        device.bus.step()
    suspension = device.suspend(range(params.engines), urgent, verify=True)
    device.admit(urgent)
    run(device, urgent)
    device.resume(suspension)
    results = finish(device, victim, data, ids)
    assert any(r.resumed for r in results) == any(h.in_job for h in suspension.halts.values())
    run(device, victim, 3)
    device.unload(victim)
    assert device.suspensions == []


@pytest.mark.parametrize("overlaid", [False, True])
def test_dump_only_what_the_incoming_model_displaces(soc, overlaid):
    device = Device(soc(TINY))
    victim = device.load(walking_image(TINY))
    image = smashing_image(TINY, windows=(1024, 2048 if overlaid else 0))
    image.meta.overlaid = overlaid
    small = device.load(image)
    data, ids = start(device, victim)
    device.bus.advance(3 * 400)
    suspension = device.suspend([0], small)
    assert device.admit(small) is not None or not suspension.dirty
    run(device, small)
    assert not suspension.lost_clean  # LV2 has room beside the victim
    assert (small.segments[6][0] == small.segments[7][0]) == overlaid
    device.resume(suspension)
    finish(device, victim, data, ids)


def test_the_first_jobs_of_all_engines_are_announced_before_others_are_written(soc, monkeypatch):
    device = Device(soc(BASE))
    victim = device.load(walking_image(BASE, jobs=6))
    data, ids = start(device, victim)
    suspension = device.suspend([0, 1])
    assert all(len(queue) > 1 for queue in suspension.queues.values())
    written = []
    for name in ("add", "ring_doorbell"):
        monkeypatch.setattr(EngineQueue, name, _noting(name, getattr(EngineQueue, name), written))
    device.resume(suspension)
    assert written[:4] == [(name, engine) for engine in (0, 1) for name in ("add", "ring_doorbell")]
    assert suspension.announced < device.bus.cycle
    finish(device, victim, data, ids)


def _noting(name, real, calls):
    def call(queue, *arguments, **options):
        calls.append((name, queue.number))
        return real(queue, *arguments, **options)

    return call


def test_pause_can_be_withdrawn(soc):
    device = Device(soc(TINY))
    victim = device.load(walking_image(TINY))
    data, ids = start(device, victim)
    records = device.pause([0], LIMIT, verify=True)
    assert records[0].in_job or records[0].loaded >= 0
    device.go_on([0])
    assert not any(r.resumed for r in finish(device, victim, data, ids))


def test_word_of_a_halt_that_was_withdrawn_is_not_taken_for_the_next(soc):
    device = Device(soc(TINY, costs=HostCosts.free()))
    victim = device.load(walking_image(TINY))
    data, ids = start(device, victim)
    queue = device.engines[0]
    queue.pause()
    while queue.state() != EngineState.HALTED:
        device.bus.step()
    queue.go_on()  # before anyone has looked at the interrupt
    record = device.pause([0], LIMIT, verify=True)[0]
    assert queue.state() == EngineState.HALTED and record.cycle <= device.bus.cycle
    device.go_on([0])
    finish(device, victim, data, ids)


def test_idle_engine_counts_as_halted(soc):
    device = Device(soc(BASE))
    before = device.bus.cycle
    assert [r.in_job for r in device.pause([0, 1]).values()] == [False, False]
    assert device.bus.cycle == before


def test_no_room_for_the_dump_pauses_nothing(soc):
    device = Device(soc(TINY))
    victim = device.load(walking_image(TINY))
    urgent = device.load(smashing_image(TINY))
    device.dram.allocate(device.dram.largest_block - 8192)
    data, ids = start(device, victim)
    with pytest.raises(OutOfMemory, match="nothing was paused"):
        device.suspend([0], urgent)
    assert not any(r.resumed for r in finish(device, victim, data, ids))


@pytest.mark.parametrize("failing", range(8))
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("windows", [None, (8192, 8192)], ids=["all of LV2", "engines apart"])
@pytest.mark.parametrize("params", [TINY, BASE], ids=["one engine", "two engines"])
def test_failure_in_the_middle_of_a_dump_loses_nothing(params, windows, again, failing):
    """Where nothing of LV2 has to go, what comes in may run on one engine while the dump of another fails."""
    soc = FakeSoc(params, seed=failing, costs=HostCosts.free())
    device = Device(soc)
    poison(device)
    victim = device.load(walking_image(params, jobs=2 * params.engines))
    urgent = device.load(smashing_image(params, engines=params.engines, windows=windows))
    data, ids = start(device, victim)
    for _ in range(failing % 6 + 1):
        device.bus.step()
    suspension = device.suspend(range(params.engines), urgent)
    count = [0]

    def inject(engine, insn):
        count[0] += engine == failing % params.engines
        return Fault.BUS if count[0] == failing // 2 + 1 else None

    operation = device.admit(urgent)
    soc.inject = inject
    if operation is not None:
        try:
            run(device, urgent)
        except SupervisorFault as fault:
            assert "dump job of the driver" in str(fault)
            device.recover()
            device.abort(urgent)
        except DriverError:
            device.abort(urgent)
    soc.inject = lambda engine, insn: None
    if again:
        device.admit(urgent)
        run(device, urgent)
    device.resume(suspension)
    finish(device, victim, data, ids)


@pytest.mark.slow
def test_failure_of_a_dump_while_another_engine_runs_what_came_in():
    """Where nothing of LV2 has to go, an engine whose own dump has ended is overwritten while that of another fails."""
    struck = 0
    for seed in range(120):
        soc = FakeSoc(BASE, seed=seed, costs=HostCosts.free())
        device = Device(soc)
        poison(device)
        image = walking_image(BASE, jobs=2, engines=1)
        victims = [device.load(image, [engine]) for engine in (0, 1)]
        urgent = device.load(smashing_image(BASE, engines=2, windows=(8192, 8192)))
        begun = [(victim, *start(device, victim, number)) for number, victim in enumerate(victims)]
        for _ in range(seed % 12 + 1):
            device.bus.step()
        suspension = device.suspend([0, 1], urgent)
        device.admit(urgent)
        dumps, ran = {job.id for queue in device.engines for job in queue.jobs}, set[int]()

        def inject(engine, insn, soc=soc, dumps=dumps, ran=ran):
            dumping = soc._bodies[engine].job["job_id"] in dumps
            ran.update([] if dumping else [engine])
            return Fault.BUS if dumping and ran else None

        soc.inject = inject
        try:
            run(device, urgent)
        except SupervisorFault:
            device.recover()
            device.abort(urgent)
            engine = ran.pop()
            struck += any(r.memory[1] == engine and r.memory[0] != Space.LV2 for r in suspension.dirty)
        soc.inject = lambda engine, insn: None
        device.resume(suspension)
        for victim, data, ids in begun:
            finish(device, victim, data, ids)
    assert struck


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 40))])
def test_random_nesting(soc, seed):
    print("seed", seed)
    random = np.random.default_rng(seed)
    params = (TINY, BASE)[seed % 2]
    device = Device(soc(params, seed=seed, costs=HostCosts.free()), ring_log2=int(random.integers(0, 4)))
    poison(device)
    sizes = [
        (4096, 1024),
        (params.lv2_bytes // 2, params.lv2_bytes // 4),
        (params.lv2_bytes - 8192, 4096),
        (4096, 4096),
    ]
    models = [
        device.load(walking_image(params, jobs=int(random.integers(1, 5)), name=f"m{i}", windows=sizes[i]))
        for i in range(4)
    ]
    smash = device.load(smashing_image(params, engines=params.engines))
    stack = []
    for model in [*models, smash]:
        if stack:
            suspension = device.suspend(range(params.engines), model, verify=True)
            stack[-1].append(suspension)
        device.admit(model)
        model.write_tensor("x", d := random.integers(-128, 128, (1, 8, 8)).astype(np.int8))
        device.begin(model, LIMIT)
        ids = device.submit(model, range(len(model.image.meta.jobs)), limit=LIMIT)
        stack.append([model, d, ids])
        for _ in range(int(random.integers(0, 12))):
            device.bus.step()
    while stack:
        model, data, ids, *suspension = stack.pop()
        if suspension:
            device.resume(suspension[0])
        finish(device, model, data, ids)
