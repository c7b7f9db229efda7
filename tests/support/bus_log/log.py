"""The log of one scenario: a line for each call of the bus, with its cycle, and digests of the lines."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from hw.contract.bus import Bus
from hw.contract.job import JOB, JOB_MAGIC
from hw.contract.regs import register_map

EVERY = 250  #: lines from one digest of a log to the next
_SHORT = 16  #: bytes of memory that a line shows whole


@dataclass(frozen=True)
class Digests:
    """What is kept of a log: how many lines it has, and digests of all lines up to every :data:`EVERY`-th and up to the
    last."""

    lines: int
    prefixes: list[str]

    @classmethod
    def of(cls, lines: Sequence[str]) -> "Digests":
        """The digests of a log."""
        running, prefixes = hashlib.blake2b(digest_size=8), list[str]()
        for number, line in enumerate(lines, 1):
            running.update(line.encode() + b"\n")
            if not number % EVERY or number == len(lines):
                prefixes.append(running.hexdigest())
        return cls(len(lines), prefixes)

    def parts_within(self, other: "Digests") -> tuple[int, int] | None:
        """The lines, from the first up to the last, within which two logs part; None if they are equal."""
        for i, (mine, theirs) in enumerate(zip_longest(self.prefixes, other.prefixes)):
            if mine != theirs:
                return i * EVERY + 1, min((i + 1) * EVERY, max(self.lines, other.lines))
        return None


def difference(before: Sequence[str], after: Sequence[str], context: int = 4) -> str:
    """Where two logs part, and the lines around; empty if they are equal."""
    found = next((i for i, pair in enumerate(zip_longest(before, after)) if pair[0] != pair[1]), None)
    if found is None:
        return ""
    shared = [f"  {line}" for line in before[max(0, found - context) : found]]
    parted = [f"{mark} {line}" for mark, log in (("-", before), ("+", after)) for line in log[found : found + context]]
    return "\n".join([f"they part at call {found + 1}:", *shared, *parted])


class LoggedBus:
    """A ``hw.contract.bus.Bus`` in front of another that appends a line to ``lines`` for each call, results
    included."""

    def __init__(self, bus: Bus, lines: list[str]) -> None:
        self.bus, self.params, self.costs = bus, bus.params, bus.costs
        self._lines = lines
        self._names = {address: name for name, address in register_map(bus.params.engines).items()}

    @property
    def cycle(self) -> int:
        return self.bus.cycle

    def note(self, text: str) -> None:
        """Append a line of the scenario's own: what it asks for next, or what has come of it."""
        self._lines.append(f"{self.cycle} {text}")

    def read_reg(self, address: int) -> int:
        begin, value = self.cycle, self.bus.read_reg(address)
        self._lines.append(f"{begin} read {self._names[address]}: {value:#x}")
        return value

    def write_reg(self, address: int, value: int) -> None:
        self.note(f"write {self._names[address]} = {value:#x}")
        self.bus.write_reg(address, value)

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        begin, data = self.cycle, self.bus.read_mem(address, size, charge=charge)
        self._lines.append(f"{begin} load {address:#x}{'' if charge else ' uncharged'}: {_shown(data)}")
        return data

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        self.note(f"store {address:#x}{'' if charge else ' uncharged'}: {_shown(data)}")
        self.bus.write_mem(address, data, charge=charge)

    def wait_irq(self, limit: int) -> bool:
        begin, woken = self.cycle, self.bus.wait_irq(limit)
        self._lines.append(f"{begin} wait {limit}: {woken}")
        return woken

    def advance(self, cycles: int) -> None:
        self.note(f"advance {cycles}")
        self.bus.advance(cycles)

    def close(self) -> None:
        self.note("close")
        self.bus.close()


def _shown(data: bytes) -> str:
    """Few bytes as they are, the members of a job descriptor that are not zero, a digest of anything else."""
    if len(data) <= _SHORT:
        return data.hex()
    if len(data) == JOB.size and int.from_bytes(data[:2], "little") == JOB_MAGIC:
        return "job " + " ".join(f"{name}={value}" for name, value in JOB.unpack(data).items() if value)
    return f"{len(data)} bytes {hashlib.blake2b(data, digest_size=8).hexdigest()}"
