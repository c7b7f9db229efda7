"""Gives an image its addresses: DRAM segments, LV2 windows, relocated code."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, SEGMENTS, Insn, Segment
from hw.image import Image, ImageError
from sw.driver.errors import DriverError, OutOfMemory
from sw.driver.memory.allocator import Allocator
from sw.driver.memory.ranges import Range, intersect, normalise, overlap, size

#: Bursts may not cross a 4 KiB page, so page-aligned segments give the same bursts wherever a model is loaded.
SEGMENT_ALIGN = 4096
_PURPOSE = ("code", "weights", "inputs", "outputs", "scratch", "scratch")


@dataclass(frozen=True)
class ImagePlacement:
    """Says where an image lies. ``segments``: (first byte, size) of each of the eight; 6 and 7 are in LV2."""

    segments: list[tuple[int, int]]
    dram_blocks: list[int]  #: allocations that are the model's own
    lv2_block: int | None  #: None if the model shares LV2 with others

    def release(self, dram: Allocator, lv2: Allocator) -> None:
        """Give everything back."""
        for address in self.dram_blocks:
            dram.free(address)
        if self.lv2_block is not None:
            lv2.free(self.lv2_block)


def place(image: Image, dram: Allocator, lv2: Allocator, weights: int | None = None) -> ImagePlacement:
    """Allocate the segments of ``image``. ``weights`` says where its weights are already, if another model has the
    same.

    DRAM segments are this model's own (:class:`OutOfMemory` if they do not fit, and nothing stays allocated). LV2
    windows are its own while LV2 has room, and start at LV2 byte 0 otherwise: such models take turns.
    """
    sizes = image.meta.segment_sizes
    segments = [(0, 0)] * SEGMENTS
    blocks: list[int] = []
    try:
        for i, size in enumerate(sizes):
            if size and i not in LV2_SEGMENTS:
                if i == Segment.WEIGHTS and weights is not None:
                    blocks.append(dram.share(weights))
                else:
                    blocks.append(dram.allocate(size, SEGMENT_ALIGN, f"{_PURPOSE[i]} of model {image.meta.model!r}"))
                segments[i] = (blocks[-1], size)
    except DriverError:
        for address in blocks:
            dram.free(address)
        raise
    align = image.params.lv1_word
    first, second = (-(-sizes[i] // align) * align for i in LV2_SEGMENTS)
    behind = 0 if image.meta.overlaid else first
    window = _allocate_window(lv2, behind + second, align, image.meta.model)
    for i, offset in zip(LV2_SEGMENTS, (0, behind), strict=True):
        segments[i] = ((window or 0) + offset if sizes[i] else 0, sizes[i])
    return ImagePlacement(segments, blocks, window)


def _allocate_window(lv2: Allocator, size: int, align: int, model: str) -> int | None:
    if not size:
        return None
    try:
        return lv2.allocate(size, align, f"LV2 windows of model {model!r}")
    except OutOfMemory:
        return None


def relocate(image: Image, segments: list[tuple[int, int]]) -> bytes:
    """Return the code with every relocation applied: symbols ``segment0`` to ``segment7`` are first bytes of
    segments."""
    code = bytearray(image.code)
    symbols = {f"segment{i}": base for i, (base, _) in enumerate(segments)}
    for entry in image.meta.relocations:
        if entry.symbol not in symbols:
            raise ImageError(
                f"image {image.meta.model!r}: relocation at PC {entry.pc} names unknown symbol {entry.symbol!r}; "
                f"known are {', '.join(symbols)}"
            )
        place = slice(entry.pc * INSN_BYTES, (entry.pc + 1) * INSN_BYTES)
        insn = Insn.decode(bytes(code[place]))
        value = insn[entry.field] + symbols[entry.symbol]
        code[place] = Insn(insn.op, {**insn.fields, entry.field: value}).encode()
    return bytes(code)


def choose_windows(
    sizes: tuple[int, int],
    lv2_bytes: int,
    align: int,
    *,
    taken: Iterable[Range] = (),
    dirty: Iterable[Range] = (),
    clean: Iterable[Range] = (),
    prefetched: Iterable[Range] = (),
    current: tuple[int, int] | None = None,
) -> tuple[int, int]:
    """Return the addresses of the LV2 windows (segments 6 and 7) of a model that is to run while others are suspended.

    Least overlap with ``dirty`` bytes comes first (they must be dumped), then with ``clean`` ones (they are loaded
    again), then with ``prefetched`` weights; then staying at ``current``; then low addresses. Never overlaps ``taken``
    (:class:`DriverError` if that is impossible). Addresses are multiples of ``align``; a window of no bytes lies at 0.
    """
    weights = [normalise(r) for r in (dirty, clean, prefetched)]
    blocked = normalise(taken)
    edges = [edge for r in [*weights, blocked] for pair in r for edge in pair]
    options = [_places(n, lv2_bytes, align, edges, sizes, now) for n, now in zip(sizes, current or (0, 0), strict=True)]
    priced = [
        [(at, tuple(size(intersect([(at, at + n)], r)) for r in weights)) for at in places]
        for n, places in (
            (n, [p for p in o if not overlap([(p, p + n)], blocked)]) for n, o in zip(sizes, options, strict=True)
        )
    ]
    best = None
    for (a, cost_a), (b, cost_b) in product(*priced):
        if overlap([(a, a + sizes[0])], [(b, b + sizes[1])]):
            continue
        total = tuple(x + y for x, y in zip(cost_a, cost_b, strict=True))
        key = (total, (a, b) != current, a, b)
        best = key if best is None else min(best, key)
    if best is None:
        raise DriverError(
            f"LV2 has no place for windows of {sizes[0]} and {sizes[1]} bytes beside {size(blocked)} bytes of models "
            "that run: suspend these, too, or wait for them"
        )
    return best[2], best[3]


@lru_cache(maxsize=1024)
def fits(sizes: tuple[int, int], lv2_bytes: int, align: int, taken: tuple[Range, ...]) -> bool:
    """Return whether windows have a place as :func:`choose_windows` chooses one."""
    try:
        choose_windows(sizes, lv2_bytes, align, taken=taken)
    except DriverError:
        return False
    return True


def _places(
    window: int, lv2_bytes: int, align: int, edges: list[int], sizes: tuple[int, int], current: int
) -> list[int]:
    """Return where a window may sensibly start: at an edge of something, or beside the other window at one."""
    if not window:
        return [0]
    places = {0, lv2_bytes - window, current}
    for edge in {0, lv2_bytes, *edges}:
        for shift in (0, -window, *sizes, -sum(sizes)):
            at = edge + shift
            places |= {at // align * align, -(-at // align) * align}
    return sorted(at for at in places if at % align == 0 and 0 <= at <= lv2_bytes - window)
