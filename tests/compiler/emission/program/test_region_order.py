"""Semaphores of a region: whatever operators need of each other, and no more."""

import itertools
import random

import numpy as np
import pytest

from compiler.emission.program.dependencies import Needs, _Log, apart, dependencies
from compiler.emission.program.job import JobProgram
from compiler.emission.program.region_order import RegionError, order_tasks, synchronise
from compiler.emission.program.schedule import schedule
from compiler.emission.program.semaphores import BETWEEN, Sem
from compiler.emission.program.task import Task
from hw.contract.isa import UNIT_OF, Op, Segment
from hw.contract.params import preset
from sim.cost import insn_cycles
from sim.functional import Box

TINY = preset("tiny")
_OPS = (Op.LD1, Op.LD0, Op.MAC, Op.VEC, Op.ST1)


def copy(op: Op, source: int, target: int, size: int, **more: int) -> Task:
    return Task(op, {"src": source, "dst": target, "len": size, **more})


def part(*tasks: Task) -> JobProgram:
    job = JobProgram(TINY, 0)
    job.tasks = list(tasks)
    return job


def load(source: int, target: int, size: int = 16) -> Task:
    return copy(Op.LD1, source, target, size, src_seg=Segment.LV2)


def store(source: int, target: int, size: int = 16) -> Task:
    return copy(Op.ST1, source, target, size, dst_seg=Segment.LV2)


def test_a_load_waits_for_the_store_of_its_bytes_alone():
    stores = [store(0, 100), store(0, 116), store(0, 132)]
    early, late, outside = load(100, 64), load(120, 80, 8), load(400, 96)
    needs = dependencies([part(*stores), part(early, late, outside)], TINY)
    assert needs[early] == {stores[0]} and needs[late] == {stores[1]} and needs[outside] == set()


def test_bytes_are_told_apart_exactly():
    """Two interleaved columns of pixels: reading one does not wait for the other."""
    columns = {"n0": 4, "src_s0": 8, "dst_s0": 16}
    one, other = (copy(Op.ST1, 0, at, 8, dst_seg=Segment.LV2, **columns) for at in (0, 8))
    read = copy(Op.LD1, 8, 512, 8, src_seg=Segment.LV2, n0=4, src_s0=16, dst_s0=8)
    assert dependencies([part(one, other), part(read)], TINY)[read] == {other}


def test_what_is_read_must_not_be_overwritten():
    read, write = load(0, 64), store(200, 0)
    assert dependencies([part(read), part(write)], TINY)[write] == {read}


def test_constant_weights_need_no_order():
    fetch = copy(Op.LD2, 0, 0, 16, src_seg=Segment.WEIGHTS, dst_seg=Segment.LV2)
    other = copy(Op.LD2, 0, 64, 16, src_seg=Segment.WEIGHTS, dst_seg=Segment.LV2)
    assert dependencies([part(fetch), part(other)], TINY)[other] == set()


def test_engines_that_touch_the_same_bytes():
    assert apart([[part(store(0, 0))], [part(store(0, 16))]])
    assert not apart([[part(store(0, 0))], [part(load(8, 0))]])
    assert not apart([[part(store(0, 0))], [part(store(0, 15))]])
    assert apart([[part(load(0, 0))], [part(load(0, 0))]])


@pytest.mark.parametrize("seed", range(20))
def test_random_needs_are_kept_and_nothing_else_is_waited_for(seed):
    """Against the definition: an instruction may start when, and not before, what it needs has ended."""
    rng = random.Random(seed)
    tasks = [Task(rng.choice(_OPS), {}) for _ in range(60)]
    needs: Needs = {
        task: {tasks[i] for i in rng.sample(range(at), min(at, rng.randint(0, 3))) if _related(tasks[i], task)}
        for at, task in enumerate(tasks)
    }
    synchronise(tasks, needs)
    order = schedule(tasks, TINY, lambda task: 1 + tasks.index(task) % 7)
    end = dict(zip(order.tasks, order.ends, strict=True))
    start = dict(zip(order.tasks, order.starts, strict=True))
    free: dict[int, int] = {}
    best: dict[Task, int] = {}
    for task in tasks:  # program order within each unit
        begin = max([free.get(task.unit, 0), *(best[need] for need in _closed(task, tasks, needs))])
        best[task] = free[task.unit] = begin + 1 + tasks.index(task) % 7
        assert start[task] == begin and end[task] == best[task], f"seed {seed}"


def _related(need: Task, task: Task) -> bool:
    return (need.unit, task.unit) in BETWEEN


def _closed(task: Task, tasks: list[Task], needs: Needs) -> set[Task]:
    """What ``task`` and the tasks of its unit ahead of it need: it starts behind those."""
    ahead = tasks[: tasks.index(task) + 1]
    return {need for other in ahead if other.unit is task.unit for need in needs[other]}


def test_a_unit_takes_first_what_can_start_first():
    long, short = Task(Op.MAC, {"n0": 100, "p0": 10}), Task(Op.VEC, {"n0": 5})
    behind = Task(Op.VEC, {})
    needs: Needs = {long: set(), behind: {long}, short: set()}
    order, cycles = order_tasks([part(long, behind), part(short)], needs, TINY, 1)
    assert order.index(short) < order.index(behind)
    assert cycles > 1000


def test_what_has_most_behind_it_goes_first():
    """Short tasks of the vector unit, which free accumulators, do not wait for all of a long layer ahead of them."""
    pool = [Task(Op.VEC, {"n0": 500}) for _ in range(10)]
    arrays = [Task(Op.MAC, {"n0": 100, "p0": 5}) for _ in range(10)]
    drains = [Task(Op.VEC, {"n0": 20}) for _ in arrays]
    needs: Needs = {drain: {mac} for drain, mac in zip(drains, arrays, strict=True)} | {task: set() for task in pool}
    needs |= {mac: {drains[at - 2]} if at > 1 else set() for at, mac in enumerate(arrays)}
    conv = list(itertools.chain(*zip(arrays, drains, strict=True)))
    busy = sum(insn_cycles(task.op, task.fields, TINY, 1) for task in [*pool, *drains])
    for parts in ([part(*pool), part(*conv)], [part(*conv), part(*pool)]):
        order, cycles = order_tasks(parts, needs, TINY, 1)
        assert cycles < 1.2 * busy
        assert order.index(drains[0]) < order.index(pool[-1])


def test_a_circle_is_an_error():
    a, b = Task(Op.MAC, {}), Task(Op.VEC, {})
    with pytest.raises(RegionError, match="circle"):
        order_tasks([part(a), part(b)], {a: {b}, b: {a}}, TINY, 1)


def test_semaphores_do_not_count_too_far():
    stores = [Task(Op.ST1, {}) for _ in range(300)]
    loads = [Task(Op.LD1, {}) for _ in range(300)]
    needs: Needs = {task: set() for task in stores} | {b: {a} for a, b in zip(stores, loads, strict=True)}
    with pytest.raises(RegionError, match="MOVE_FREE would count beyond"):
        synchronise([*stores, *loads], needs)


def test_each_semaphore_of_a_region_belongs_to_one_pair():
    assert len(set(BETWEEN.values())) == len(BETWEEN)
    assert not {Sem.OWN_READY, Sem.WEIGHT0_FULL} & set(BETWEEN.values())
    assert {unit for pair in BETWEEN for unit in pair} == set(UNIT_OF.values())


def test_logs_hold_what_was_touched_and_not_all_memory_before_it(monkeypatch):
    rooms = list[int]()
    zeros = np.zeros
    monkeypatch.setattr(np, "zeros", lambda shape, *more: rooms.append(shape) or zeros(shape, *more))
    there = 1 << 20
    dependencies([part(*(store(0, there + 64 * i) for i in range(64))), part(load(there, 64))], TINY)
    assert 0 < sum(rooms) < 64 * 64 * 8


@pytest.mark.parametrize("seed", range(20))
def test_logs_agree_with_a_list_of_all_bytes(seed):
    rand, log, bytes_of = random.Random(seed), _Log(), dict[int, int]()
    for number in range(1, 40):
        box = Box(rand.randrange(2000), (rand.randint(1, 4), rand.randint(1, 9)), (rand.choice([0, 16, 33]), 1))
        if rand.random() < 0.5:
            log.note(box, number)
            bytes_of |= dict.fromkeys(box.indices().reshape(-1).tolist(), number)
        else:
            touched = box.indices().reshape(-1).tolist()
            assert log.latest(box) == max(bytes_of.get(byte, 0) for byte in touched)
