"""First-fit placement of buffers with lifetimes: two buffers may share bytes if they never live at the same time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PlacedBuffer:
    """A buffer at ``offset``, alive from step ``start`` to step ``end``, both included."""

    offset: int
    size: int
    start: int
    end: int


class FirstFit:
    """An address range of ``limit`` bytes (None: unlimited); every buffer is aligned to ``align``."""

    def __init__(self, limit: int | None, align: int, base: int = 0) -> None:
        self.limit, self.align, self.base = limit, align, base
        self.placed: list[PlacedBuffer] = []

    def place(self, size: int, start: int, end: int) -> int | None:
        """Offset of a buffer, at the lowest address free over its life; None if it does not fit."""
        size = -(-size // self.align) * self.align
        offset = self.base
        for other in sorted(self.placed, key=lambda p: p.offset):
            if other.end < start or end < other.start or other.offset + other.size <= offset:
                continue
            if other.offset >= offset + size:
                break
            offset = other.offset + other.size
        if self.limit is not None and offset + size > self.limit:
            return None
        self.placed.append(PlacedBuffer(offset, size, start, end))
        return offset

    @property
    def extent(self) -> int:
        """End of the highest buffer."""
        return max((p.offset + p.size for p in self.placed), default=self.base)
