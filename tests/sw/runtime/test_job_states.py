"""Whenever the host looks for interrupts, each job is in one place, and its state says in which."""

import weakref

import numpy as np

from hw.contract.params import preset
from sw.driver import Device
from sw.driver.queues.engine_queue import EngineQueue
from sw.driver.queues.job import JobState
from sw.runtime import Mechanism, Runtime
from tests.support.bus_log.images import placed_image
from tests.support.fake_soc import FakeSoc
from tests.support.preempt_images import smashing_image, walking_image

TINY, BASE = preset("tiny"), preset("base")
X = np.random.default_rng(0).uniform(-60, 60, (1, 8, 8)).astype(np.float32)
IN_A_QUEUE = (JobState.HELD, JobState.QUEUED)


def check(device, known):
    """Every live job is in one queue or one suspension; those in a ring come first, in the order of their places."""
    queued = [job for queue in device.engines for job in queue.jobs]
    off = [job for s in device.suspensions for jobs in s.queues.values() for job in jobs if job.state is JobState.OFF]
    held = {job for s in device.suspensions for jobs in s.queues.values() for job in jobs}
    assert len({*queued, *off}) == len(queued) + len(off)
    back = [JobState.DONE] if device.transferring else []  # on one engine, while another is still being restored
    assert all(job.state in (*IN_A_QUEUE, JobState.OFF, *back) for job in held)
    for queue in device.engines:
        states = [job.state for job in queue.jobs]
        assert set(states) <= set(IN_A_QUEUE) and states == sorted(states, key=IN_A_QUEUE.index, reverse=True)
        places = [job.place for job in queue.unfinished]
        assert places == list(range(queue.place - len(places), queue.place))
        assert all(job.engine == queue.number for job in queue.jobs)
    for job in known:
        assert (job.state in IN_A_QUEUE) == (job in queued), job
        assert (job.state is JobState.OFF) == (job in off), job
    return {job.state for job in known}


def test_at_every_look(monkeypatch):
    known, add = weakref.WeakSet(), EngineQueue.add

    def noting(queue, job, **options):
        known.add(job)
        add(queue, job, **options)

    monkeypatch.setattr(EngineQueue, "add", noting)
    seen = {state for seed in range(6) for state in served(seed, known)}
    assert {JobState.QUEUED, JobState.OFF, JobState.DONE, JobState.LOST} <= seen


def served(seed, known):
    """Serve random requests, and check all ``known`` jobs whenever the host looks; the states that were found."""
    print("seed", seed)
    known.clear()
    rng = np.random.default_rng(seed)
    params, placed = (TINY, BASE)[seed % 2], seed % 4 == 1
    device = Device(FakeSoc(params, seed=seed), ring_log2=1)
    images = [placed_image(params)] if placed else [walking_image(params, jobs=4)]
    models = [device.load(image) for image in [*images, walking_image(params, jobs=3, engines=1, name="b")]]
    models += [device.load(smashing_image(params, name=tenant), tenant=tenant) for tenant in "ab"]
    choices = list(rng.choice([Mechanism.DUMP, Mechanism.DUMP, Mechanism.KILL, Mechanism.WAIT], 40))
    runtime = Runtime(
        device, "round_robin", placed=placed, preemptive=True, may_kill=True, rule=lambda now: choices.pop()
    )  # fmt: skip
    for _ in range(10):
        model, at = models[int(rng.integers(4))], device.bus.cycle + int(rng.integers(1, 25_000))
        late = at + 8_000 if rng.random() < 0.2 else None
        runtime.submit(model, X, priority=int(rng.integers(3)), arrival=at, deadline=late)
    seen, read = set(), device.regs.read

    def look(name):
        if name == "IRQ":
            seen.update(check(device, set(known)))
        return read(name)

    device.regs.read = look
    runtime.run_until_done()
    assert not device.queues.jobs and not device.suspensions
    return seen


def test_jobs_that_a_full_ring_holds_back_behind_a_restore():
    device = Device(FakeSoc(BASE), ring_log2=0)
    victim, urgent = device.load(walking_image(BASE, jobs=2)), device.load(smashing_image(BASE, engines=2))
    device.begin(victim, 10**6)
    jobs = device.submit(victim, [0, 1], limit=10**6)
    for _ in range(4):
        device.bus.step()
    suspension = device.suspend([0, 1], urgent)
    assert check(device, jobs) == {JobState.OFF} and suspension.points
    device.admit(urgent)
    device.begin(urgent, 10**6)
    device.collect(device.submit(urgent, [0, 1], limit=10**6), 10**6)
    device.resume(suspension)
    assert suspension in device.suspensions and check(device, jobs) == {JobState.HELD}
    device.collect(jobs, 10**6)
    assert check(device, jobs) == {JobState.DONE} and not device.suspensions
