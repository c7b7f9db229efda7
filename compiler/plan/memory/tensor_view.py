"""Where a tensor lies and how its (N, H, W, C) elements are reached there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hw.contract.isa import LV2_SEGMENTS
from sim.functional import Box


@dataclass(frozen=True)
class PixelBox:
    """A box of pixels: ``rows`` x ``cols`` from (y, x) on, ``y_step``/``x_step`` apart, channels c to c + channels.
    It may reach beyond the image: what lies outside is padding."""

    n: int
    y: int
    rows: int
    x: int
    cols: int
    c: int
    channels: int
    y_step: int = 1
    x_step: int = 1


@dataclass(frozen=True)
class TensorView:
    """A tensor at ``offset`` of ``segment``: shape (N, H, W, C), byte strides of N, H and W; channels are adjacent."""

    segment: int
    offset: int
    shape: tuple[int, int, int, int]
    strides: tuple[int, int, int]

    @classmethod
    def dense(cls, segment: int, offset: int, shape: tuple[int, int, int, int]) -> "TensorView":
        """Return the view of a tensor that lies row-major, channels last, without gaps."""
        _, h, w, c = shape
        return cls(segment, offset, shape, (h * w * c, w * c, c))

    def spread(self, pitch: int) -> "TensorView":
        """Return the same elements with pixels ``pitch`` bytes apart, rows and images without further gaps."""
        _, h, w, _ = self.shape
        return replace(self, strides=(h * w * pitch, w * pitch, pitch))

    @property
    def on_chip(self) -> bool:
        """In LV2 rather than DRAM."""
        return self.segment in LV2_SEGMENTS

    @property
    def is_dense(self) -> bool:
        """No gaps between pixels, rows or images."""
        _, h, w, c = self.shape
        sn, sh, sw = self.strides
        n1 = self.shape[0] == 1
        return (
            (w == 1 or sw == c)
            and (h == 1 or sh == w * c)
            and (n1 or sn == h * w * c)
            and (h * w == 1 or (sw == c or w == 1))
        )

    def contiguous(self, box: PixelBox) -> bool:
        """Return whether the bytes of ``box``, inside the image, follow each other without gaps."""
        _, sh, sw = self.strides
        line = box.cols * box.channels
        return (box.cols == 1 or box.x_step * sw == box.channels) and (box.rows == 1 or box.y_step * sh == line)

    def flattened(self) -> "TensorView | None":
        """Return the same elements as (1, 1, N*H*W, C), or None if one pixel stride does not reach them all."""
        (n, h, w, c), (sn, sh, sw) = self.shape, self.strides
        step = sw if w > 1 else sh if h > 1 else sn if n > 1 else c
        if (w > 1 and h > 1 and sh != w * step) or (n > 1 and h * w > 1 and sn != h * w * step):
            return None
        return TensorView(self.segment, self.offset, (1, 1, n * h * w, c), (n * h * w * step, n * h * w * step, step))

    def parts_of(self, box: PixelBox) -> Iterator[tuple[int, "TensorView", PixelBox]]:
        """Yield what has the channels of ``box``, in their order: number, view, and the box in it. That is the tensor
        itself."""
        yield 0, self, box

    def address(self, n: int, y: int, x: int, c: int) -> int:
        """Byte offset of an element in the segment, possibly of one outside of the image."""
        sn, sh, sw = self.strides
        return self.offset + n * sn + y * sh + x * sw + c

    def bytes_of(self, box: PixelBox) -> Box | None:
        """Return the bytes of the part of ``box`` inside the image; None if that is empty."""
        part = self.clip(box)
        if part is None:
            return None
        _, sh, sw = self.strides
        start = self.address(part.n, part.y, part.x, part.c)
        return Box(start, (part.rows, part.cols, part.channels), (part.y_step * sh, part.x_step * sw, 1))

    def clip(self, box: PixelBox) -> PixelBox | None:
        """Return the part of ``box`` inside the image; None if it is empty."""
        y0, y1 = inside(box.y, box.y_step, box.rows, self.shape[1])
        x0, x1 = inside(box.x, box.x_step, box.cols, self.shape[2])
        if y0 >= y1 or x0 >= x1:
            return None
        if (y0, y1, x0, x1) == (0, box.rows, 0, box.cols):
            return box
        y, x = box.y + y0 * box.y_step, box.x + x0 * box.x_step
        return replace(box, y=y, rows=y1 - y0, x=x, cols=x1 - x0)


@dataclass(frozen=True)
class PiecesView(TensorView):
    """A tensor that nobody made: the channels of ``pieces``, one behind the other. Only :meth:`parts_of` says where its
    bytes are; ``strides`` are those of pixels without gaps."""

    pieces: tuple[TensorView, ...] = ()

    @classmethod
    def of(cls, pieces: Sequence[TensorView]) -> "PiecesView":
        """Return the view of ``pieces``, which have the same pixels."""
        outside = [piece.segment for piece in pieces if not piece.on_chip]
        n, h, w, _ = pieces[0].shape
        dense = cls.dense((outside or [pieces[0].segment])[0], 0, (n, h, w, sum(one.shape[3] for one in pieces)))
        return cls(dense.segment, 0, dense.shape, dense.strides, tuple(pieces))

    @property
    def is_dense(self) -> bool:
        """Never: the bytes of a pixel do not follow each other."""
        return False

    def contiguous(self, box: PixelBox) -> bool:
        """Return False, for the same reason."""
        return False

    def flattened(self) -> "PiecesView | None":
        """Return the same of every piece; None if there is none of one."""
        flat = [made for piece in self.pieces if (made := piece.flattened())]
        return PiecesView.of(flat) if len(flat) == len(self.pieces) else None

    def parts_of(self, box: PixelBox) -> Iterator[tuple[int, TensorView, PixelBox]]:
        """Yield the pieces that have channels of ``box``: number, view, and those as a box of it."""
        first = 0
        for number, piece in enumerate(self.pieces):
            low, high = max(first, box.c), min(first + piece.shape[3], box.c + box.channels)
            if low < high:
                yield number, piece, replace(box, c=low - first, channels=high - low)
            first += piece.shape[3]

    def address(self, n: int, y: int, x: int, c: int) -> int:
        """Refuse: pieces have addresses."""
        raise TypeError("a tensor in pieces has no addresses: parts_of says where its bytes are")

    def bytes_of(self, box: PixelBox) -> Box | None:
        """Refuse, for the same reason."""
        raise TypeError("a tensor in pieces has no addresses: parts_of says where its bytes are")


def inside(first: int, step: int, count: int, extent: int) -> tuple[int, int]:
    """Return the range of i in [0, count) for which first + i*step lies in [0, extent)."""
    low = min(count, max(0, -(first // step)))
    high = min(count, max(0, -(-(extent - first) // step)))
    return low, max(low, high)


def boxes(shape: tuple[int, int, int, int], rows: int, cols: int, channels: int) -> Iterator[PixelBox]:
    """Yield the boxes that cover a tensor of ``shape`` (N, H, W, C) in order."""
    n, height, width, depth = shape
    for i in range(n):
        for c in range(0, depth, channels):
            for y in range(0, height, rows):
                for x in range(0, width, cols):
                    yield PixelBox(i, y, min(rows, height - y), x, min(cols, width - x), c, min(channels, depth - c))
