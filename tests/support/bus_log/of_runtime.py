"""Scenarios of sessions and run times: policies, priorities, deadlines, what fails and what starts over."""

from collections.abc import Callable, Mapping

import numpy as np

from hw.contract.bus import HostCosts
from hw.contract.isa import Op
from sw.runtime import Mechanism, Runtime, Session
from sw.runtime.policies import ORDER, PLACEMENT
from tests.support.bus_log.images import keeping_image, placed_image
from tests.support.bus_log.stage import BASE, TINY, Played, Stage, X
from tests.support.images import copy_image, negating_image
from tests.support.preempt_images import smashing_image, walking_image

CPU = HostCosts(cpu_step=20_000)


def own(policies: Mapping[str, Callable[..., object]]) -> list[str]:
    """Return the names of the project's policies, without those that examples and other tests have registered."""
    return [name for name, policy in policies.items() if policy.__module__.startswith("sw.")]


def sessions(stage: Stage) -> None:
    """Inferences one at a time: plain, with steps on the CPU, placed, with weights that stay, after a fault."""
    p = stage.open(BASE, ring_log2=2, costs=CPU)
    models = [p.load(walking_image(BASE, jobs=5)), p.load(negating_image(BASE, steps=2)), p.load(placed_image(BASE))]
    models.append(p.load(keeping_image(BASE), keep_weights=True))
    for model in models:
        session = Session(p.device, model)
        for _ in range(2):
            outputs, stats = session.run(X)
            p.note(f"session {model.name} {stats.latency} {sorted(outputs)}")
            p.results(stats.jobs)
    if stage.fake:
        for skip in (0, 4):
            p.fail_once(Op.ST2, skip=skip)
            p.refused(Session(p.device, models[0]).run, X)
        p.soc.hang = True
        p.refused(Session(p.device, models[0], limit=20_000).run, X)
        p.soc.hang = False
    Session(p.device, models[0]).run(X)


def orders(stage: Stage) -> None:
    """Three models under each policy, twice, on one engine and on two."""
    for params, ahead in ((TINY, None), (BASE, 2)):
        for order in own(ORDER):
            p = stage.open(params, ring_log2=2)
            models = [p.load(walking_image(params, jobs=3 + i, name=f"m{i}")) for i in range(3)]
            runtime = Runtime(p.device, order, ahead=ahead, layers_per_decision=1 if ahead is None else 2)
            for turn in range(2):
                for i, model in enumerate(models):
                    deadline = 900_000 - 1000 * i if order == "deadline" else None
                    runtime.submit(model, X, deadline=deadline, arrival=p.device.bus.cycle + 3000 * (turn + i))
            p.serve(runtime)


def placements(stage: Stage) -> None:
    """Layers of placed models and of models for one engine, by each placement."""
    for placement in own(PLACEMENT):
        for at_arrival in (False, True):
            p = stage.open(BASE, ring_log2=1)
            models = [p.load(placed_image(BASE, branches=3)), p.load(walking_image(BASE, jobs=3, engines=1))]
            runtime = Runtime(p.device, "round_robin", placement, placed=True, at_arrival=at_arrival)
            for model in models * 2:
                runtime.submit(model, X)
            p.serve(runtime)


def priorities(stage: Stage) -> None:
    """Urgent requests under each choice, announced or not, for models of one tenant and of several."""
    for params in (TINY, BASE):
        for choice in Mechanism:
            for announced in (False, True):
                p = stage.open(params)
                long = [p.load(walking_image(params, jobs=6, name=f"l{i}"), tenant=t) for i, t in enumerate("ab")]
                urgent = p.load(smashing_image(params), tenant="b" if announced else None)
                runtime = Runtime(
                    p.device, "round_robin", preemptive=True, rule=lambda now, c=choice: c, may_kill=True
                )  # fmt: skip
                for model in long:
                    runtime.submit(model, X)
                at = p.device.bus.cycle + (9000 if announced else 4500)
                runtime.submit(urgent, X, priority=1, arrival=at, announced=announced)
                p.serve(runtime)


def random_arrivals(stage: Stage) -> None:
    """Requests of random priorities at random times, for models that overlap and models that do not."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        params = (TINY, BASE)[seed % 2]
        p = stage.open(params, seed=seed, ring_log2=int(rng.integers(0, 4)))
        models = [p.load(walking_image(params, jobs=int(rng.integers(1, 5)), name=f"m{i}")) for i in range(3)]
        models += [p.load(smashing_image(params, engines=int(rng.integers(1, params.engines + 1))))]
        choices = [Mechanism(str(c)) for c in rng.choice([m.value for m in Mechanism], 40)]
        runtime = Runtime(
            p.device, "fcfs", preemptive=True, may_kill=True, rule=lambda now, c=choices: c.pop(),
        )  # fmt: skip
        for _ in range(8):
            model, at = models[int(rng.integers(4))], p.device.bus.cycle + int(rng.integers(1, 25_000))
            runtime.submit(model, X, priority=int(rng.integers(3)), arrival=at, announced=bool(rng.integers(2)))
        p.serve(runtime)


def placed_and_preempted(stage: Stage) -> None:
    """A placed model with layers in flight on both engines is taken off and comes back."""
    for delay, ring_log2 in ((2000, 6), (3500, 1), (5000, 0)):
        p = stage.open(BASE, ring_log2=ring_log2)
        runtime = Runtime(p.device, "fcfs", placed=True, preemptive=True, rule=lambda now: Mechanism.DUMP)
        runtime.submit(p.load(placed_image(BASE, branches=4)), X)
        urgent = p.load(smashing_image(BASE))
        runtime.submit(urgent, X, priority=1, arrival=p.device.bus.cycle + delay)
        p.serve(runtime)


def deadlines_and_cancelling(stage: Stage) -> None:
    """Requests that are too late or withdrawn while they wait, run, are suspended, or are on the CPU."""
    p = stage.open(TINY, costs=CPU)
    walks = [p.load(walking_image(TINY, jobs=5, name=f"w{i}")) for i in range(2)]
    slow, urgent = p.load(negating_image(TINY, steps=2)), p.load(smashing_image(TINY))
    for after in (500, 4000, 9000, 16_000):
        runtime = Runtime(p.device, "round_robin", preemptive=True, rule=lambda now: Mechanism.DUMP)
        begin = p.device.bus.cycle
        first = [runtime.submit(model, X, deadline=begin + after) for model in (walks[0], slow)]
        runtime.submit(walks[1], X)
        runtime.submit(urgent, X, priority=1, arrival=begin + 6000, deadline=begin + 5 * after)
        if after == 9000:
            for _ in range(3):
                runtime.step()
            first[1].cancel()
        p.serve(runtime)
        runtime.close()


def without_room(stage: Stage) -> None:
    """DRAM has no room for dumps, so requests start over; a run time is closed with requests in every state."""
    p = stage.open(TINY)
    long = [p.load(walking_image(TINY, jobs=6, name=f"l{i}")) for i in range(2)]
    urgent = [p.load(smashing_image(TINY, name=f"u{i}")) for i in range(2)]
    p.device.dram.allocate(p.device.dram.largest_block - 8192)
    for closed in (False, True):
        runtime = Runtime(p.device, preemptive=True, rule=lambda now: Mechanism.DUMP)
        for i, model in enumerate([*long, *urgent]):
            runtime.submit(model, X, priority=i // 2, arrival=p.device.bus.cycle + 3000 * (i + 1))
        if closed:
            runtime.requests[-1].cancel()
            for _ in range(8):
                runtime.step()
            runtime.close()
            p.note(str([request.state.value for request in runtime.requests]))
        else:
            p.serve(runtime)
    p.serve(_again(p, [*long, *urgent]))


def cpu_steps(stage: Stage) -> None:
    """Steps on the CPU beside layers of others, with an urgent request meanwhile."""
    p = stage.open(BASE, costs=CPU)
    slow = [p.load(negating_image(BASE, name=name, steps=2)) for name in "ab"]
    long, urgent = p.load(walking_image(BASE, jobs=4)), p.load(smashing_image(BASE))
    for choice in Mechanism:
        runtime = Runtime(p.device, preemptive=True, rule=lambda now, c=choice: c, may_kill=True)
        begin = p.device.bus.cycle
        for model in slow:
            runtime.submit(model, X)
        runtime.submit(long, X, arrival=begin + 5000)
        runtime.submit(urgent, X, priority=1, arrival=begin + 9000)
        p.serve(runtime)


def weights_that_stay(stage: Stage) -> None:
    """Models whose weights may stay in LV2, preempted between and within their jobs."""
    p = stage.open(TINY)
    models = [p.load(keeping_image(TINY, name=name, jobs=4), keep_weights=True) for name in ("a", "b")]
    urgent = p.load(smashing_image(TINY))
    for delay in (1500, 4000, 7000):
        runtime = Runtime(p.device, preemptive=True, rule=lambda now: Mechanism.DUMP)
        for model in models * 2:
            runtime.submit(model, X)
        runtime.submit(urgent, X, priority=1, arrival=p.device.bus.cycle + delay)
        p.serve(runtime)


def requests_that_fail(stage: Stage) -> None:
    """A body, a dump, a restore or a clearing job faults, a body hangs: one request ends, others start over."""
    for kind in range(5):
        p = stage.open((TINY, BASE)[kind % 2])
        params = p.device.params
        long = [p.load(walking_image(params, jobs=6, name=f"l{i}"), tenant=t) for i, t in enumerate("ab")]
        urgent = p.load(smashing_image(params), tenant="a")
        runtime = Runtime(p.device, "round_robin", preemptive=True, rule=lambda now: Mechanism.DUMP)
        requests = [runtime.submit(model, X) for model in long]
        requests.append(runtime.submit(urgent, X, priority=1, arrival=p.device.bus.cycle + 9000))
        if stage.fake:
            _break(p, kind)
        elif kind < 4:
            p.faulty.lose_interrupts(kind)
            at = requests[kind % 3].model.segments[2 + kind % 2][0]
            p.slave_error(at, 64, cycles=3000 + 5000 * kind)
        p.serve(runtime)
        p.faulty.heal()
        p.serve(_again(p, [*long, urgent]))


def _break(p: Played, kind: int) -> None:
    if kind < 4:
        p.fail_once(*((Op.VEC, Op.ST2, Op.LD2, Op.LD1)[kind],), own=kind > 0, skip=(3, 0, 0, 0)[kind])
        return
    reset = p.soc._reset
    count = iter(range(1000))
    p.soc.inject = lambda engine, insn: setattr(p.soc, "hang", True) if next(count) == 40 else None

    def free(engine: int) -> None:
        p.soc.hang = False
        reset(engine)

    p.soc._reset = free


def _again(p: Played, models: list) -> Runtime:
    runtime = Runtime(p.device)
    for model in models:
        runtime.submit(model, X)
    return runtime


def many_models(stage: Stage) -> None:
    """More models than LV2 has room for, on engines of their own, with interrupts that are lost or late."""
    p = stage.open(BASE, ring_log2=2)
    models = [p.load(copy_image(BASE, name=f"c{i}"), engines=[i % 2]) for i in range(3)]
    models += [p.load(smashing_image(BASE, name=f"s{i}"), engines=[1 - i]) for i in range(2)]
    runtime = Runtime(p.device, "idle_time")
    for turn in range(2):
        for model in models:
            runtime.submit(model, X, engines=[turn])
        p.faulty.lose_interrupts(turn)
        p.faulty.delay_interrupts(4000)
        p.serve(runtime)


SCENARIOS: list[Callable[[Stage], None]] = [
    sessions, orders, placements, priorities, random_arrivals, placed_and_preempted, deadlines_and_cancelling,
    without_room,     cpu_steps, weights_that_stay, requests_that_fail, many_models,
]  # fmt: skip
