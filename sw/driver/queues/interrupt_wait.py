"""Waits for interrupts: awake at first, then asleep."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from hw.contract.bus import Bus
from sw.driver.queues.registers import RegisterAccess

LOOK_AFTER = 1 << 20  #: cycles asleep after which the driver looks by itself: an interrupt may have been lost
_HISTORY = 1 << 16  #: interrupts that are remembered


def never() -> bool:
    """Return False: the host has nothing else to do."""
    return False


@dataclass(frozen=True)
class HandledInterrupt:
    """Says what an interrupt cost the host, from cycle ``begin`` to ``end``. ``engine``: whose registers and
    completions were read; -1 for the way from the interrupt line into the handler, where the driver was asleep.
    ``causes``: the engine's interrupts by name, such as ``completion``."""

    engine: int
    begin: int
    end: int
    causes: tuple[str, ...] = ()


class InterruptWait:
    """Waits for an interrupt as the driver of one SoC.

    To be woken takes as long as ``HostCosts.interrupt``. So the driver first looks for that long by itself, reading the
    register IRQ, and goes to sleep after that: it never waits for more than twice the time of one that knew what comes
    (spinning before blocking, as for locks). An interrupt that never comes costs time, not the result: the register
    is read every :data:`LOOK_AFTER` cycles, and :meth:`JobQueues.look` does so before a request is given up.

    ``handled``: the newest interrupts, for traces.
    """

    def __init__(self, bus: Bus, regs: RegisterAccess) -> None:
        self._bus, self._regs = bus, regs
        self.handled: deque[HandledInterrupt] = deque(maxlen=_HISTORY)

    def wait(self, limit: int, awake: int = 0, busy: Callable[[], bool] = never) -> int | None:
        """Return the bits of IRQ once any is set, which says that an engine has an interrupt pending, or None after
        ``limit`` cycles without.

        ``awake``: cycles to stay awake for, if that is longer: for what is known to come soon. ``busy``: asked when an
        interrupt has ended the sleep, as the way into the handler takes its time: with something more urgent to do
        meanwhile, None is returned too, and the interrupt stays pending.
        """
        costs, begin = self._bus.costs, self._bus.cycle
        awake = min(max(awake, costs.interrupt), limit)
        for _ in range(awake // max(1, costs.register_access)):
            pending = self._regs.read("IRQ")
            if pending:
                return pending
            if self._bus.cycle - begin >= awake:
                break
        while (left := limit - (self._bus.cycle - begin)) > LOOK_AFTER:
            woken = self._sleep(LOOK_AFTER)
            if woken or self._regs.read("IRQ"):
                return None if woken and busy() else self._regs.read("IRQ")
        if left <= 0 or not self._sleep(left) or busy():
            return None
        return self._regs.read("IRQ")

    def _sleep(self, limit: int) -> bool:
        woken = self._bus.wait_irq(limit)
        if woken:
            end = self._bus.cycle
            self.handled.append(HandledInterrupt(-1, end - self._bus.costs.interrupt, end))
        return woken
