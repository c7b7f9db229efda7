"""A bus that sees what a driver does, and that bounds how long anything may take: campaigns count what they reached
from here, without asking the software under attack."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.trust.differential import Mismatch
from benchmarks.trust.faulty_bus import FaultyBus
from hw.contract.bus import Bus
from hw.contract.isa import INSN_BYTES, Op, Segment
from hw.contract.job import JOB, JOB_MAGIC, JobFlag

_MAGIC = JOB_MAGIC.to_bytes(2, "little")
_SUPERVISOR, _SCRUBBER = 0xFFFF, 0xFFFE  #: in place of a model's number in tags of the driver's own jobs
_MOVED = {int(Op.ST1): "LV1", int(Op.VEC): "accumulators"}  #: what a dump that uses such an instruction takes


class Overdue(BaseException):
    """Something takes longer than it may. No ``Exception``: software that catches those must not swallow it."""


@contextmanager
def judged(what: str = "") -> Iterator[None]:
    """What is raised meanwhile is a :class:`Mismatch` that begins with ``what``: that something takes too long, and
    any error that is not left in a request, too."""
    begin = f"{what}: " if what else ""
    try:
        yield
    except Overdue as error:
        raise Mismatch(f"{begin}it takes too long: {error}") from None
    except AssertionError as error:
        raise Mismatch(f"{begin}{error}") from None
    except Exception as error:
        raise Mismatch(f"{begin}{error!r} was raised, and left in no request") from error


class WatchedBus(FaultyBus):
    """Counts in ``reached`` what kinds of jobs are queued; raises :class:`Overdue` behind cycle ``last``, and after
    ``calls`` more accesses. ``longest``: the largest cycle limit of a job so far; ``prologues``: by number of a loaded
    model, the jobs of it that have one. ``seen`` is called with the kind of each job of the driver's own (``dump``,
    ``restore``, ``reload list``, ``clearing``), or ``prologue`` or ``job``, and its descriptor, before it is queued.
    """

    def __init__(self, bus: Bus, reached: Counter[str]) -> None:
        super().__init__(bus)
        self.reached = reached
        self.last: float = math.inf
        self.calls: float = math.inf
        self.longest = 0
        self.prologues: dict[int, set[int]] = {}
        self.seen: Callable[[str, dict[str, int]], None] = lambda kind, members: None
        self._programs: dict[int, bytes] = {}  #: what was written at once, by address: programs of the driver among it

    def read_reg(self, address: int) -> int:
        """As the bus behind."""
        self._look()
        return super().read_reg(address)

    def write_reg(self, address: int, value: int) -> None:
        """As the bus behind."""
        self._look()
        super().write_reg(address, value)

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        """As the bus behind."""
        if charge and len(data) == JOB.size and data[:2] == _MAGIC:
            self._job(JOB.unpack(data))
        elif charge and len(data) % INSN_BYTES == 0:
            self._programs[address] = data
        super().write_mem(address, data, charge=charge)

    def wait_irq(self, limit: int) -> bool:
        """As the bus behind, but no further than the last cycle."""
        self._look()
        return super().wait_irq(int(min(limit, max(1, self.last - self.cycle + 1))))

    def advance(self, cycles: int) -> None:
        """As the bus behind."""
        self._look()
        super().advance(cycles)

    def _look(self) -> None:
        self.calls -= 1
        if self.cycle > self.last:
            raise Overdue(f"cycle {self.cycle} is behind {self.last:.0f}, by which all must have ended")
        if self.calls < 0:
            raise Overdue(f"too many accesses until cycle {self.cycle}")

    def _job(self, members: dict[str, int]) -> None:
        flags, number = members["flags"], members["tag"] >> 16
        if number == _SUPERVISOR:
            if any(members[f"limit{i}"] for i in range(1, Segment.SCRATCH)):
                self._tell("reload list", members)  # segments of a model: what the driver moves itself lies in others
            program = self._programs.get(members["base0"], b"")
            operations = set(program[::INSN_BYTES])
            if Op.ST2 in operations:
                self._tell("dump", members)
                self.reached.update(f"dump of {_MOVED[op]}" for op in operations & _MOVED.keys())
            elif Op.LD2 in operations:
                self._tell("restore", members)
            return
        if number == _SCRUBBER:
            self.reached["memories cleared"] += 1
            self.seen("clearing", members)
            return
        self.seen("prologue" if flags & JobFlag.PROLOGUE else "job", members)
        self.longest = max(self.longest, members["cycle_limit"])
        self.reached["event wait"] += bool(flags & (JobFlag.WAIT0 | JobFlag.WAIT1))
        self.reached["window after an earlier job"] += bool(flags & JobFlag.PROLOGUE and members["window_after"])
        self.reached["resumed job"] += bool(flags & JobFlag.RESUME)
        if not flags & (JobFlag.RESUME | JobFlag.PROLOGUE) and members["tag"] & 0xFFFF in self.prologues.get(
            number, ()
        ):
            self.reached["prologue left out"] += 1

    def _tell(self, kind: str, members: dict[str, int]) -> None:
        self.reached[kind] += 1
        self.seen(kind, members)
