"""Scenarios of the driver in which something fails: bodies, memory, interrupts, the driver's own jobs."""

from collections.abc import Callable

from hw.contract.isa import Op
from hw.contract.job import COMPLETION
from sw.driver import LoadedModel, Suspension
from tests.support.bus_log.of_driver import NEARLY_FREE
from tests.support.bus_log.stage import BASE, LIMIT, TINY, Played, Stage
from tests.support.preempt_images import smashing_image, walking_image


def faults(stage: Stage) -> None:
    """What the memory answers with an error: to a body, a dump, a restore; and an engine that does not go on."""
    p = stage.open(BASE, ring_log2=2)
    victim, other = (p.load(walking_image(BASE, jobs=6, name=name)) for name in ("victim", "other"))
    if stage.fake:
        p.fail_once(Op.LD1, skip=2)
    else:
        p.slave_error(victim.segments[2][0], 64)
    p.refused(p.run, victim)
    p.faulty.heal()
    p.device.abort(victim)
    p.run(other)
    _, completions = p.device.engines[0].memory
    p.faulty.damage_next_read(completions + p.device.engines[0].place % 4 * COMPLETION.size, 0x40)
    p.refused(p.run, victim)
    p.device.abort(victim)
    p.faulty.lose_interrupts(2)
    p.run(other)
    ids = p.start(victim)
    p.soc.step()
    p.refused(p.device.suspend, [0], other)
    p.refused(p.device.suspend, [0, 1], other, limit=10)
    known = victim.image.meta.cancel_points
    victim.image.meta.cancel_points = known[::-1]
    p.refused(p.device.suspend, [0, 1], other)
    victim.image.meta.cancel_points = known
    for suspension in p.device.suspensions:
        p.device.resume(suspension)
    p.finish(victim, ids)
    p.device.begin(victim, LIMIT)
    p.refused(p.device.collect, p.device.submit(victim, range(6), limit=100), 500)
    p.device.abort(victim)
    waiting = p.device.submit(victim, [1], limit=0, cycle_limit=1)  # for an event that nobody signals
    p.refused(p.device.collect, waiting, None)
    p.device.abort(victim)
    p.run(victim)


def stuck_behind_others(stage: Stage) -> None:
    """A job that never begins is overdue, behind one that has ended long before anybody was told."""
    p = stage.open(BASE)
    model = p.load(walking_image(BASE, jobs=6))
    for others in ([], [0], [0, 1, 2]):
        p.device.begin(model, LIMIT)
        jobs = p.device.submit(model, [*others, 4], limit=LIMIT, cycle_limit=500_000)
        p.refused(p.device.collect, jobs, None)
        p.device.abort(model)


def faults_of_the_driver(stage: Stage) -> None:
    """A dump, a restore or a job that clears fails, hangs or is lost; what was suspended comes back all the same."""
    if not stage.fake:
        return
    for op, hang in ((Op.ST2, False), (Op.LD2, False), (Op.ST2, True)):
        p = stage.open(BASE, costs=NEARLY_FREE)
        victim, urgent = p.load(walking_image(BASE, jobs=3)), p.load(smashing_image(BASE, engines=2))
        ids = p.start(victim)
        for _ in range(3):
            p.device.bus.advance(1)
        suspension = p.device.suspend([0, 1], urgent)
        p.fail_once(op, own=True)
        p.soc.hang = hang
        p.refused(_admitted, p, urgent)
        p.soc.hang = False
        p.device.recover()
        p.device.abort(urgent)
        p.device.admit(urgent)
        p.refused(p.run, urgent)
        p.device.abort(urgent)
        p.fail_once(op, own=True)
        p.refused(_resumed, p, suspension)
        if p.device.suspensions:
            p.device.recover()
            p.device.resume(suspension)
        p.finish(victim, ids)
    for op in (Op.LD1, Op.ST1):
        p = stage.open(TINY)
        first, second = (p.load(smashing_image(TINY, name=tenant), tenant=tenant) for tenant in "ab")
        p.run(first)
        p.fail_once(op, own=True)
        p.refused(p.run, second)
        p.device.abort(second)
        p.run(second)


def _admitted(p: Played, urgent: LoadedModel) -> None:
    p.device.admit(urgent)
    p.run(urgent)


def _resumed(p: Played, suspension: Suspension) -> None:
    p.device.resume(suspension)
    p.device.settle()


SCENARIOS: list[Callable[[Stage], None]] = [faults, stuck_behind_others, faults_of_the_driver]
