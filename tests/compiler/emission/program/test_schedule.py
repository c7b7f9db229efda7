"""Rings of buffers and the program order made from them."""

import pytest
from hypothesis import given, strategies as st

from compiler.emission.program.ring import Ring
from compiler.emission.program.schedule import schedule
from compiler.emission.program.semaphores import PAIRS, Sem
from compiler.emission.program.task import Task
from hw.contract.isa import Op, Unit
from hw.contract.params import preset
from tests.support.cost_oracle import program_order

TINY = preset("tiny")


def _pipeline(slots: int, keys: list[int]) -> list[Task]:
    ring = Ring(Sem.ACT1_FULL, Sem.ACT1_FREE, 0, 64, slots)
    tasks = []
    for key in keys:
        held = ring.find(key)
        if held is None:
            held = ring.fill(key)
            tasks.append(Task(Op.LD1, {"dst": held.address}))
            ring.filled_by(held, [tasks[-1]])
        tasks.append(Task(Op.LD0, {"src": held.address}))
        ring.read_by(held, tasks[-1])
    return tasks


@given(
    st.integers(1, 4), st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(1, 50), min_size=2, max_size=2)
)
def test_program_order_keeps_unit_order_and_counts(slots, keys, cycles):
    tasks = _pipeline(slots, sorted(keys))
    times = {Op.LD1: cycles[0], Op.LD0: cycles[1]}
    result = schedule(tasks, TINY, lambda task: times[task.op])
    for unit in (Unit.LD1, Unit.LD0):
        assert [t for t in result.tasks if t.unit is unit] == [t for t in tasks if t.unit is unit]
    assert list(zip(result.starts, result.ends, result.tasks, strict=True)) == program_order(
        tasks, lambda task: times[task.op]
    )
    counts = dict.fromkeys(Sem, 0)
    for task in result.tasks:
        for sem in task.waits:
            counts[sem] -= 1
            assert counts[sem] >= 0
        for sem in task.signals:
            counts[sem] += 1
    assert not any(counts.values())


def test_two_buffers_let_loads_run_ahead():
    result = schedule(_pipeline(2, list(range(6))), TINY, lambda task: 100)
    assert result.cycles == 700
    assert [t.op for t in result.tasks[:3]] == [Op.LD1, Op.LD0, Op.LD1] or result.tasks[1].op is Op.LD1
    assert schedule(_pipeline(1, list(range(6))), TINY, lambda task: 100).cycles == 1200


def test_a_wait_that_nothing_signals_is_an_error():
    with pytest.raises(ValueError, match="nothing signals"):
        schedule([Task(Op.MAC, {}, waits={Sem.ACT0_FULL})], TINY)


def test_a_signal_that_nothing_takes_is_an_error():
    with pytest.raises(ValueError, match="ACT0_FULL"):
        schedule([Task(Op.LD0, {}, signals={Sem.ACT0_FULL})], TINY)


def test_every_semaphore_belongs_to_one_pair():
    names = [sem for pair in PAIRS for sem in pair] + [Sem.OWN_READY]
    assert sorted(names) == sorted(Sem)
