"""Gives an image its addresses: DRAM segments, LV2 windows, relocated code."""

from dataclasses import dataclass

from hw.contract.isa import INSN_BYTES, LV2_SEGMENTS, SEGMENTS, Insn, Segment
from hw.image import Image, ImageError
from sw.driver.errors import DriverError, OutOfMemory
from sw.driver.memory.allocator import Allocator

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
