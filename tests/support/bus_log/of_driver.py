"""Scenarios of the driver alone: queues, tenants, preemption."""

from collections.abc import Callable

import numpy as np

from hw.contract.bus import HostCosts
from sw.driver import LoadedModel
from tests.support.bus_log.images import keeping_image, placed_image
from tests.support.bus_log.stage import BASE, LIMIT, TINY, Played, Stage
from tests.support.images import copy_image
from tests.support.large_states import in_fragments, with_a_row_to_spare, with_all_of_lv2
from tests.support.preempt_images import smashing_image, walking_image

FOUR = TINY.replace(engines=4)
NEARLY_FREE = HostCosts(register_access=1, memory_line=0, interrupt=0)  #: so that steps decide where engines stand


def rings_that_fill(stage: Stage) -> None:
    """Jobs wait for room in rings of one, two and four places; engines wait for events of each other."""
    for params, ring_log2 in ((TINY, 0), (TINY, 1), (BASE, 0), (BASE, 1), (BASE, 2), (BASE, 6)):
        p = stage.open(params, ring_log2=ring_log2)
        model, other = p.load(walking_image(params, jobs=7)), p.load(walking_image(params, jobs=3, name="other"))
        for seed in range(2):
            ids = p.start(model, seed)
            more = p.start(other, seed)
            p.finish(other, more)
            p.finish(model, ids)
        p.device.begin(model, LIMIT)
        ids = p.device.submit(model, range(7), limit=0, cycle_limit=500_000)
        p.note(f"fitted {len(ids)} {p.device.patience()} {p.device.lv2_use().held}")
        p.finish(model, ids + p.device.submit(model, range(len(ids), 7), limit=LIMIT))
        for loaded in (model, other):
            p.device.unload(loaded)


def windows_that_take_turns(stage: Stage) -> None:
    """Prologues wait for the job that has their window, wherever that is queued: beside jobs of another model, on
    another engine, behind what came back."""
    p = stage.open(BASE, ring_log2=2)
    models = [p.load(keeping_image(BASE, jobs=6, windows=2 + i, name=f"turns{i}")) for i in range(2)]
    for _ in range(2):
        for model in models:
            p.device.begin(model, LIMIT)
        ids = [(m, i) for j in range(6) for m in models for i in p.device.submit(m, [j], limit=LIMIT)]
        for model in models:
            p.finish(model, [job_id for each, job_id in ids if each is model])
    p.device.chain(models[0])
    p.device.begin(models[0], LIMIT)
    p.finish(models[0], [i for j in range(6) for i in p.device.submit(models[0], [j], limit=LIMIT, engine=j // 2 % 2)])
    noise = p.load(smashing_image(BASE))
    for steps in (2, 5, 8):
        _preempted(p, models[0], p.start(models[0]), noise, [0], steps)


def placed_branches(stage: Stage) -> None:
    """Layers of a placed model on random engines, in rings of several sizes."""
    for seed, params in enumerate((BASE, FOUR, BASE, FOUR)):
        rng = np.random.default_rng(seed)
        p = stage.open(params, seed=seed, ring_log2=seed)
        model = p.load(placed_image(params, parts=params.engines, branches=2 + 2 * seed))
        for _ in range(2):
            p.device.begin(model, LIMIT)
            ids = [
                job_id
                for index in range(len(model.image.meta.jobs))
                for job_id in p.device.submit(model, [index], limit=LIMIT, engine=int(rng.choice(model.engines)))
            ]
            p.finish(model, ids)
        p.refused(p.device.submit, model, [0], limit=LIMIT, engine=5)


def chained_engines(stage: Stage) -> None:
    """Jobs of a model for one engine that run on any, one after the other."""
    p = stage.open(BASE, ring_log2=1)
    model = p.load(walking_image(BASE, jobs=5, engines=1), engines=[1])
    p.device.chain(model)
    rng = np.random.default_rng(3)
    for _ in range(2):
        p.device.begin(model, LIMIT)
        ids = [i for j in range(5) for i in p.device.submit(model, [j], limit=LIMIT, engine=int(rng.integers(2)))]
        p.finish(model, ids)


def tenants(stage: Stage) -> None:
    """Engines and windows that pass from one tenant to another are cleared, also after a reset."""
    p = stage.open(BASE, ring_log2=1)
    big = [p.load(smashing_image(BASE, engines=2, name=f"big{t}"), tenant=t) for t in "ab"]
    small = [p.load(walking_image(BASE, jobs=3, name=f"small{t}"), tenant=t) for t in ("a", "b", None)]
    for model in (*big, *small, *big[::-1]):
        p.run(model)
    ids = [(model, p.start(model)) for model in small]
    for model, mine in ids:
        p.finish(model, mine)
    p.start(small[0])
    p.device.abort(small[0])
    p.run(small[1])
    for model in (*big, *small):
        p.device.unload(model)


def kept_weights(stage: Stage) -> None:
    """Prologues are left out whose weights are in LV2, until another model, a tenant or a reset was there."""
    p = stage.open(TINY)
    first, same = (p.load(keeping_image(TINY, name=name), keep_weights=True) for name in ("first", "same"))
    other, noise = p.load(keeping_image(TINY), tenant="b", keep_weights=True), p.load(smashing_image(TINY))
    for model in (first, first, same, first, other, first, first, noise, first, first):
        p.run(model)
    p.start(first)
    p.device.abort(first)
    p.run(first)
    for steps in range(4):
        ids = p.start(first)
        _preempted(p, first, ids, noise, [0], steps)
    p.run(first)


def preempted_at_points(stage: Stage) -> None:
    """A model is taken off at every point, dumped for one that overwrites everything, and brought back: by copies, by
    its own loads run again, or from its beginning. One engine and two, and rings too small for what comes back."""
    for params, jobs, ring_log2, steps in (
        (TINY, 1, 6, range(9)),
        (TINY, 5, 1, (2, 5, 11)),
        (BASE, 4, 0, range(4, 10)),
    ):
        p = stage.open(params, ring_log2=ring_log2, costs=NEARLY_FREE if jobs == 1 else None)
        victim = p.load(walking_image(params, jobs=jobs))
        urgent = p.load(smashing_image(params, engines=params.engines))
        for count in steps:
            ids = p.start(victim, count)
            _preempted(p, victim, ids, urgent, range(params.engines), count, verify=not count % 2)
        p.run(victim)


def preempted_on_one_of_two_engines(stage: Stage) -> None:
    """One model is preempted where another runs on: by an urgent one of another tenant, and by one that fits beside."""
    p = stage.open(BASE)
    images = [walking_image(BASE, jobs=4, engines=1, name=name) for name in ("victim", "neighbour")]
    victim, neighbour = (p.load(image, engines=[i], tenant="a") for i, image in enumerate(images))
    urgent = p.load(smashing_image(BASE, windows=(8192, 0)), tenant="b")
    for count in range(1, 16, 3):
        ids, others = p.start(victim), p.start(neighbour)
        _preempted(p, victim, ids, urgent, [0], count)
        p.finish(neighbour, others)


def state_in_portions(stage: Stage) -> None:
    """More pieces than one program moves, more programs than their DRAM holds, no room to stage them in LV1 or LV2, and
    then none in DRAM."""
    for image in (with_all_of_lv2, in_fragments, with_a_row_to_spare):
        p = stage.open(TINY)
        victim, urgent = p.load(image(TINY)), p.load(smashing_image(TINY))
        for steps in (3, 5) if stage.fake else (25, 40):
            _preempted(p, victim, p.start(victim), urgent, [0], steps)
    p.device.dram.allocate(p.device.dram.largest_block - 8192)
    p.start(victim)
    p.soc.step()
    p.refused(p.device.suspend, [0], urgent)
    p.device.abort(victim)


def nested(stage: Stage) -> None:
    """Three models that suspend each other, of which one is dropped; a pause that is withdrawn; a placed one."""
    p = stage.open(BASE, ring_log2=1)
    models = [p.load(walking_image(BASE, jobs=4, name=f"m{i}")) for i in range(2)]
    placed, last = p.load(placed_image(BASE)), p.load(smashing_image(BASE, engines=2))
    for count in (3, 6):
        running, stack = [p.start(model) for model in models], []
        p.device.bus.advance(400 * count)
        p.device.pause([0, 1], LIMIT)
        p.device.go_on([0, 1])
        stack.append(p.device.suspend([0, 1], placed))
        p.device.admit(placed)
        p.device.begin(placed, LIMIT)
        for index in range(6):
            p.device.submit(placed, [index], limit=0, engine=index % 2)
        p.device.bus.advance(100 * count)
        stack.append(p.device.suspend([0, 1], last))
        p.device.admit(last)
        p.run(last)
        if count == 3:
            p.device.abandon(stack.pop())
        else:
            p.device.resume(stack.pop())
            p.device.suspend([0, 1])
            p.device.drop_all()
            continue
        p.device.drop(stack[0], models[1])
        p.device.resume(stack.pop())
        p.finish(models[0], running[0])
    p.run(models[1])


def engines_that_change(stage: Stage) -> None:
    """Models on the engines that the fewest use, with weights in common; then on others."""
    p = stage.open(BASE)
    model = p.load(copy_image(BASE, name="copy"), engines="least_used")
    more = p.load(copy_image(BASE, name="more"), engines="least_used", like=[model], body_cycles=5000)
    for _ in range(2):
        ids = [(each, p.start(each)) for each in (model, more)]
        for each, mine in ids:
            p.finish(each, mine)
        p.device.assign(model, [1])
    p.refused(p.device.assign, model, [0, 1])
    p.device.unload(more)
    p.device.unload(model)


def _preempted(
    p: Played, victim: LoadedModel, ids: list[int], urgent: LoadedModel, engines, steps: int, verify: bool = False
) -> None:
    """Run ``urgent`` in the middle of jobs of ``victim``, and these to their end."""
    for _ in range(steps):
        p.soc.step()
    suspension = p.device.suspend(engines, urgent, verify=verify)
    p.note(f"halts {sorted(suspension.halts.items())}")
    p.device.admit(urgent)
    p.finish(urgent, p.start(urgent, 1))
    p.device.resume(suspension)
    p.finish(victim, ids)


SCENARIOS: list[Callable[[Stage], None]] = [
    rings_that_fill, windows_that_take_turns, placed_branches, chained_engines, tenants, kept_weights,
    preempted_at_points, preempted_on_one_of_two_engines, state_in_portions, nested,
    engines_that_change,
]  # fmt: skip
