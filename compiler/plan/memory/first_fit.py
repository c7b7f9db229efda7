"""First-fit placement of buffers with lifetimes: two buffers may share bytes if they never live at the same time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

BufferT = TypeVar("BufferT")


@dataclass(frozen=True)
class PlacedBuffer(Generic[BufferT]):
    """``buffer`` at ``offset``."""

    offset: int
    size: int
    buffer: BufferT


class FirstFit(Generic[BufferT]):
    """An address range of ``limit`` bytes (None: unlimited); every buffer is aligned to ``align``. ``apart``: whether
    two buffers never live at the same time."""

    def __init__(self, limit: int | None, align: int, apart: Callable[[BufferT, BufferT], bool], base: int = 0) -> None:
        self.limit, self.align, self.base = limit, align, base
        self.placed: list[PlacedBuffer[BufferT]] = []
        self._apart = apart

    def place(self, size: int, buffer: BufferT) -> int | None:
        """Return the offset of ``size`` bytes for ``buffer``, at the lowest address free over its life; None if none
        is."""
        size = -(-size // self.align) * self.align
        offset = self.base
        for other in sorted(self.placed, key=lambda p: p.offset):
            if other.offset + other.size <= offset or self._apart(other.buffer, buffer):
                continue
            if other.offset >= offset + size:
                break
            offset = other.offset + other.size
        if self.limit is not None and offset + size > self.limit:
            return None
        self.placed.append(PlacedBuffer(offset, size, buffer))
        return offset

    @property
    def extent(self) -> int:
        """End of the highest buffer."""
        return max((p.offset + p.size for p in self.placed), default=self.base)
