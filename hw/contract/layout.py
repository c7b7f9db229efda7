"""Lays out the bytes of records that hardware and software share in DRAM, each from one table."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}  #: of ``struct``, by size in bytes


class LayoutError(ValueError):
    """Says why a record cannot be packed or unpacked; names record, field, value and limit."""


@dataclass(frozen=True)
class Member:
    """Describes a member of a record: an unsigned little-endian number of ``size`` bytes at byte ``offset``."""

    name: str
    offset: int
    size: int
    doc: str


@dataclass(frozen=True)
class Record:
    """Describes a record of fixed size, in which bytes that no member covers are reserved and zero."""

    name: str
    size: int
    members: tuple[Member, ...]

    def __post_init__(self) -> None:
        end = 0
        for m in self.members:
            if m.offset < end or m.offset + m.size > self.size:
                raise LayoutError(f"{self.name}.{m.name} overlaps its neighbour or leaves the record")
            if m.size not in _FORMATS:
                raise LayoutError(f"{self.name}.{m.name} must have 1, 2, 4 or 8 bytes, not {m.size}")
            end = m.offset + m.size

    @cached_property
    def _coding(self) -> struct.Struct:
        """Return the coding of all members, in order."""
        parts, end = ["<"], 0
        for m in self.members:
            parts.append(f"{m.offset - end}x{_FORMATS[m.size]}")
            end = m.offset + m.size
        return struct.Struct("".join([*parts, f"{self.size - end}x"]))

    @cached_property
    def _by_name(self) -> dict[str, Member]:
        return {m.name: m for m in self.members}

    def __getitem__(self, name: str) -> Member:
        try:
            return self._by_name[name]
        except KeyError:
            raise LayoutError(f"{self.name} has no member {name!r}") from None

    def pack(self, **values: int) -> bytes:
        """Return the bytes of a record; members that are not given are zero."""
        if not values.keys() <= self._by_name.keys():
            raise LayoutError(f"{self.name} has no member {min(values.keys() - self._by_name.keys())!r}")
        try:
            return self._coding.pack(*map(values.get, self._by_name, repeat(0)))
        except struct.error:
            for name, value in values.items():
                limit = (1 << 8 * self[name].size) - 1
                if not 0 <= value <= limit:
                    raise LayoutError(f"{self.name}.{name} must be 0 to {limit}, not {value}") from None
            raise

    def unpack(self, raw: bytes) -> dict[str, int]:
        """Return every member of the record in ``raw``."""
        if len(raw) != self.size:
            raise LayoutError(f"{self.name} has {self.size} bytes, not {len(raw)}")
        return dict(zip(self._by_name, self._coding.unpack(raw), strict=True))


def consecutive(offset: int, size: int, names: Iterable[tuple[str, str]]) -> tuple[Member, ...]:
    """Return the members of ``size`` bytes each, one after another from ``offset``, from (name, doc) pairs."""
    return tuple(Member(name, offset + i * size, size, doc) for i, (name, doc) in enumerate(names))
