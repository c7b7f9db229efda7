"""Leases hardware events to loaded models.

The hardware's event counters only ever count up (modulo 2^32), so that a late waiter cannot miss one. An image speaks
of events "signalled n times since the inference began"; the driver keeps the count at which each inference begins and
adds it.
"""

from sw.driver.errors import DriverError, OutOfEvents
from sw.driver.queues.registers import RegisterAccess


class EventLease:
    """Holds the hardware events of one loaded model, in the order of the image's own numbers."""

    def __init__(self, regs: RegisterAccess, numbers: list[int]) -> None:
        self.numbers = numbers
        self._regs = regs
        self._base: list[int] = []
        self._expected: list[int] = []
        self.synchronise()

    def synchronise(self) -> None:
        """Take the counters as they stand. Only while no job of the model is outstanding."""
        self._expected = [self._regs.read(f"EVENT[{n}]") for n in self.numbers]

    def begin(self) -> None:
        """Begin an inference: waits count from here."""
        self._base = list(self._expected)

    def signalled(self, event: int) -> int:
        """Return the hardware number of image event ``event``, which one more submitted job will signal."""
        self._expected[event] = (self._expected[event] + 1) & 0xFFFFFFFF
        return self.numbers[event]

    def all_signalled(self, event: int) -> tuple[int, int]:
        """Return the hardware number and absolute count that stand for "every job submitted so far has signalled"."""
        return self.numbers[event], self._expected[event]

    def wait(self, event: int, times: int) -> tuple[int, int]:
        """Return the hardware number and absolute count that stand for "``times`` since the inference began"."""
        return self.numbers[event], (self._base[event] + times) & 0xFFFFFFFF


class EventPool:
    """Knows which hardware events are free."""

    def __init__(self, regs: RegisterAccess, count: int) -> None:
        self._regs = regs
        self._free = list(range(count))
        self._count = count

    def lease(self, count: int, model: str) -> EventLease:
        """Lease ``count`` events to ``model``; raises :class:`OutOfEvents` if fewer are free."""
        if count > len(self._free):
            raise OutOfEvents(
                f"model {model!r} needs {count} hardware events, {len(self._free)} of {self._count} are free; "
                "unload a model or compile for fewer engines"
            )
        if count < 0:
            raise DriverError(f"model {model!r} cannot have {count} hardware events")
        lease = EventLease(self._regs, self._free[:count])  # reads registers: it may fail
        self._free = self._free[count:]
        return lease

    def release(self, lease: EventLease) -> None:
        """Give the events of a lease back."""
        self._free = sorted(self._free + lease.numbers)
        lease.numbers = []
