"""Orders of regions that are remembered are those that would be found."""

import random

import pytest

from compiler.emission.program import order_cache
from compiler.emission.program.dependencies import dependencies
from compiler.emission.program.job import JobProgram
from compiler.emission.program.order_cache import OrderedTasks, ordered
from compiler.emission.program.region_order import order_tasks, synchronise
from compiler.emission.program.task import Task
from hw.contract.isa import Op, Segment
from hw.contract.params import preset

TINY = preset("tiny")
Move = tuple[Op, int, int]  #: a load or a store, and the first and the number of the bytes of LV2 that it touches


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(order_cache, "_ANSWERS", {})


def region(*operators: list[Move]) -> list[JobProgram]:
    """Operators with one load or store after the other; in LV1 each has bytes of its own."""
    parts = [JobProgram(TINY, 0) for _ in operators]
    for number, (part, moves) in enumerate(zip(parts, operators, strict=True)):
        for op, at, size in moves:
            own, other = ("dst", "src") if op is Op.LD1 else ("src", "dst")
            part.emit(op, {own: 64 * number, other: at, "len": size, f"{other}_seg": Segment.LV2})
    return parts


def found(parts: list[JobProgram]) -> OrderedTasks:
    needs = dependencies(parts, TINY)
    tasks, cycles = order_tasks(parts, needs, TINY, 1)
    synchronise(tasks, needs)
    return OrderedTasks(tasks, cycles)


def remembered(parts: list[JobProgram]) -> tuple[list, bool]:
    """What is answered, and whether that was known."""
    asked = list[OrderedTasks]()

    def ask() -> OrderedTasks:
        asked.append(found(parts))
        return asked[0]

    answer = ordered(parts, TINY, 1, ask)
    return content(parts, answer), not asked


def content(parts: list[JobProgram], answer: OrderedTasks) -> list:
    number: dict[Task, int] = {task: at for at, task in enumerate(task for part in parts for task in part.tasks)}
    return [answer.cycles, *((number[task], task.waits, task.signals) for task in answer.tasks)]


def test_where_bytes_lie_does_not_matter_but_which_are_shared():
    first = region([(Op.ST1, 0, 16), (Op.ST1, 16, 16)], [(Op.LD1, 8, 16), (Op.LD1, 96, 16)])
    moved = region([(Op.ST1, 200, 16), (Op.ST1, 216, 16)], [(Op.LD1, 208, 16), (Op.LD1, 0, 16)])
    apart = region([(Op.ST1, 0, 16), (Op.ST1, 16, 16)], [(Op.LD1, 64, 16), (Op.LD1, 96, 16)])
    answer, known = remembered(first)
    assert not known and remembered(moved) == (answer, True)
    other, known = remembered(apart)
    assert not known and other != answer


def test_answers_that_are_known_are_those_that_would_be_found(monkeypatch):
    """Over a few bytes, so that many regions touch them alike and others nearly so."""
    monkeypatch.setattr(order_cache, "_MOST", 2000)
    rng, hits = random.Random(1), 0
    for _ in range(2000):
        operators = [
            [(rng.choice((Op.LD1, Op.ST1)), rng.randrange(7), rng.randint(1, 3)) for _ in range(rng.randint(1, 2))]
            for _ in range(2)
        ]
        answer, known = remembered(region(*operators))
        again = region(*operators)
        assert answer == content(again, found(again))
        hits += known
    assert 500 < hits < 1900


def test_few_answers_are_kept():
    for size in range(1, 100):
        remembered(region([(Op.ST1, 0, size)], [(Op.LD1, 0, size)]))
    assert len(order_cache._ANSWERS) == order_cache._MOST
