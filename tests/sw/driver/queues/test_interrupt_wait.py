"""Waiting for interrupts: by looking first, then asleep."""

import pytest

from hw.contract.bus import HostCosts
from sw.driver.queues.interrupt_wait import InterruptWait

COSTS = HostCosts(register_access=50, memory_line=10, interrupt=1000, decision=500)


class Line:
    """Bus and registers of a SoC whose interrupt comes at cycle ``at``."""

    def __init__(self, at: int, costs: HostCosts = COSTS) -> None:
        self.at, self.costs, self.cycle, self.slept = at, costs, 0, 0

    def read(self, name: str) -> int:
        assert name == "IRQ"
        pending = int(self.cycle >= self.at)
        self.cycle += self.costs.register_access
        return pending

    def wait_irq(self, limit: int) -> bool:
        self.slept += 1
        if self.at > self.cycle + limit:
            self.cycle += limit
            return False
        self.cycle = max(self.cycle, self.at) + self.costs.interrupt
        return True


def _wait(line: Line, limit: int, awake: int = 0) -> int | None:
    return InterruptWait(line, line).wait(limit, awake)  # type: ignore[arg-type]


@pytest.mark.parametrize("at", [0, 1, 49, 50, 700, 950])
def test_an_interrupt_that_comes_soon_needs_no_sleep(at):
    line = Line(at)
    assert _wait(line, 10_000) == 1
    assert not line.slept and line.cycle <= at + 2 * COSTS.register_access


@pytest.mark.parametrize("at", [951, 1000, 5000])
def test_a_later_one_wakes_the_driver(at):
    line = Line(at)
    assert _wait(line, 10_000) == 1
    assert line.slept == 1
    assert line.cycle <= at + COSTS.interrupt + 2 * COSTS.register_access


def test_it_stays_awake_for_what_is_known_to_come():
    line = Line(5000)
    assert _wait(line, 10_000, awake=6000) == 1
    assert not line.slept and line.cycle <= 5000 + 2 * COSTS.register_access


@pytest.mark.parametrize(("limit", "awake"), [(0, 0), (49, 0), (120, 0), (1000, 0), (4321, 0), (4321, 9000)])
def test_nothing_comes_within_the_limit(limit, awake):
    line = Line(10**9)
    assert _wait(line, limit, awake) is None
    assert line.cycle == limit


def test_a_host_that_costs_nothing_sleeps_at_once():
    line = Line(300, HostCosts.free())
    assert _wait(line, 1000) == 1
    assert line.slept == 1 and line.cycle == 300


def test_being_woken_is_remembered_with_what_it_took():
    line = Line(5000)
    wait = InterruptWait(line, line)  # type: ignore[arg-type]
    wait.wait(10_000)
    (woken,) = wait.handled
    assert (woken.engine, woken.begin, woken.end) == (-1, 5000, 5000 + COSTS.interrupt)
    wait.wait(10_000)  # still high: seen awake
    assert len(wait.handled) == 1
