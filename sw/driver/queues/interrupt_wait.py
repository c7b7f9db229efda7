"""Waiting for interrupts: awake at first, then asleep."""

from sim.bus import Bus
from sw.driver.queues.registers import RegisterAccess

LOOK_AFTER = 1 << 20  #: cycles asleep after which the driver looks by itself: an interrupt may have been lost


class InterruptWait:
    """How the driver of one SoC waits for an interrupt.

    To be woken takes as long as ``HostCosts.interrupt``. So the driver first looks for that long by itself, reading the
    register IRQ, and goes to sleep after that: it never waits for more than twice the time of one that knew what comes
    (spinning before blocking, as for locks). An interrupt that never comes costs time, not the result: the register
    is read every :data:`LOOK_AFTER` cycles, and :meth:`JobQueues.look` does so before a request is given up.
    """

    def __init__(self, bus: Bus, regs: RegisterAccess) -> None:
        self._bus, self._regs = bus, regs

    def wait(self, limit: int, awake: int = 0) -> int | None:
        """Bits of IRQ once any is set: an engine has an interrupt pending. None after ``limit`` cycles without.

        ``awake``: cycles to stay awake for, if that is longer: for what is known to come soon.
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
            if self._bus.wait_irq(LOOK_AFTER) or self._regs.read("IRQ"):
                return self._regs.read("IRQ")
        if left <= 0 or not self._bus.wait_irq(left):
            return None
        return self._regs.read("IRQ")
