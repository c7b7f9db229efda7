"""The core in C as Python meets it: errors come out, and memory is given back."""

import gc
import weakref

import numpy as np
import pytest

from hw.contract.params import preset
from sim.cost.exact.copies import BurstTable, BusCopy, CopySteps
from sim.model.agenda import Agenda
from sim.model.commands import Command
from sim.model.memory import MemoryModel
from sim.model.memory_units import StoreUnit

TINY = preset("tiny")


def test_an_error_in_an_event_ends_the_run_and_the_next_run_goes_on():
    agenda, seen = Agenda(), []

    def fail(time: int, subject: str) -> None:
        raise ValueError(f"{subject} at {time}")

    agenda.at(3, fail, "trouble")
    agenda.at(3, lambda time, _: seen.append(time))
    with pytest.raises(ValueError, match="trouble at 3"):
        agenda.run(10)
    assert not seen
    agenda.run(10)
    assert seen == [3] and agenda.stopped is None


def test_events_of_one_cycle_happen_in_the_order_in_which_they_were_planned():
    agenda, seen = Agenda(), []
    for number, time in enumerate([5, 3, 5, 4, 3] * 40):
        agenda.at(time, lambda time, number: seen.append((time, number)), number)
    agenda.run(4)
    assert seen == sorted(seen) and len(seen) == 120
    agenda.stop(4)
    assert agenda.stopped == 4
    agenda.run(5)
    assert seen == sorted(seen) and len(seen) == 200


def test_a_unit_that_is_offered_more_than_it_holds_says_so():
    memory = MemoryModel(TINY, agenda := Agenda())
    unit = StoreUnit(memory, agenda, 0, lambda *_: None)
    work = BusCopy(CopySteps(1, 1, 0, 0), BurstTable(np.array([[0, 1, 0, 0]]), 1), 0, 0)
    with pytest.raises(RuntimeError, match="ST2 was offered more commands"):
        for _ in range(40):
            unit.offer(1, Command(work, (0, 0), lambda _: None, lambda _: None, 0))


def test_a_core_is_given_back():
    agenda = Agenda()
    MemoryModel(TINY, agenda)
    agenda.at(1, lambda *_: None)
    core = weakref.ref(agenda.core)
    del agenda
    gc.collect()
    assert core() is None
