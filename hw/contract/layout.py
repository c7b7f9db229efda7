"""Byte layouts of records that hardware and software share in DRAM, from one table each."""

from collections.abc import Iterable
from dataclasses import dataclass


class LayoutError(ValueError):
    """A record that cannot be packed or unpacked; names record, field, value and limit."""


@dataclass(frozen=True)
class Member:
    """``size`` bytes at byte ``offset`` of a record, an unsigned little-endian number."""

    name: str
    offset: int
    size: int
    doc: str


@dataclass(frozen=True)
class Record:
    """A fixed-size record: bytes that no member covers are reserved and zero."""

    name: str
    size: int
    members: tuple[Member, ...]

    def __post_init__(self) -> None:
        end = 0
        for m in self.members:
            if m.offset < end or m.offset + m.size > self.size:
                raise LayoutError(f"{self.name}.{m.name} overlaps its neighbour or leaves the record")
            end = m.offset + m.size

    def __getitem__(self, name: str) -> Member:
        for m in self.members:
            if m.name == name:
                return m
        raise LayoutError(f"{self.name} has no member {name!r}")

    def pack(self, **values: int) -> bytes:
        """Encode; members that are not given are zero."""
        raw = bytearray(self.size)
        for name, value in values.items():
            m = self[name]
            if not 0 <= value < 1 << (8 * m.size):
                raise LayoutError(f"{self.name}.{name} must be 0 to {(1 << 8 * m.size) - 1}, not {value}")
            raw[m.offset : m.offset + m.size] = int(value).to_bytes(m.size, "little")
        return bytes(raw)

    def unpack(self, raw: bytes) -> dict[str, int]:
        """Decode every member."""
        if len(raw) != self.size:
            raise LayoutError(f"{self.name} has {self.size} bytes, not {len(raw)}")
        return {m.name: int.from_bytes(raw[m.offset : m.offset + m.size], "little") for m in self.members}


def consecutive(offset: int, size: int, names: Iterable[tuple[str, str]]) -> tuple[Member, ...]:
    """Members of ``size`` bytes each, one after another from ``offset``, from (name, doc) pairs."""
    return tuple(Member(name, offset + i * size, size, doc) for i, (name, doc) in enumerate(names))
