"""Which buffers of tensors lie in LV2, and where: several orders of first fit, and the staging areas beside them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from compiler.plan.memory.first_fit import FirstFit
from compiler.plan.memory.sharing import SharedBuffer
from compiler.plan.regions.layer_order import LayerOrder, Lived
from hw.contract.params import SocParams

#: Orders in which buffers are offered LV2: what lives long and large either last or first.
_ORDERS: tuple[Callable[[SharedBuffer], tuple[int, int]], ...] = (
    lambda buffer: (buffer.size * (buffer.end - buffer.start + 1), buffer.start),
    lambda buffer: (-buffer.size, buffer.start),
    lambda buffer: (-buffer.size * (buffer.end - buffer.start + 1), buffer.start),
)


@dataclass(frozen=True)
class Areas:
    """The staging areas, the first ``size`` bytes. They are in use always, or, if ``touched`` has by step the buffers
    that pass them where they lie in DRAM, in steps one of whose buffers does."""

    size: int
    touched: Sequence[Sequence[SharedBuffer]] | None = None
    begun: frozenset[int] = field(default_factory=frozenset)  #: steps that use them wherever buffers without a place go

    @classmethod
    def of(cls, size: int, touched: Sequence[Sequence[SharedBuffer]]) -> "Areas":
        """Return areas of steps that touch these buffers."""
        outside = (number for number, held in enumerate(touched) if any(one.segment is not None for one in held))
        return cls(size, touched, frozenset(outside))

    def used(self, offsets: dict[int, int]) -> frozenset[int]:
        """Return the steps in which they are in use if buffers have these ``offsets`` in LV2, and others none."""
        known = enumerate(self.touched or ())
        return self.begun | {
            number for number, held in known if any(one.segment is None and id(one) not in offsets for one in held)
        }


@dataclass(frozen=True)
class Packing:
    """LV2 offsets by identity of the buffer; bytes that pass from or to DRAM because a buffer did not fit; end of LV2;
    whether pixels have their pitch, or are dense."""

    offsets: dict[int, int]
    moved: int
    extent: int
    padded: bool


@dataclass(frozen=True)
class _InUse:
    """Staging areas while some steps run, the first and the last of which are ``users``."""

    users: frozenset[int]


def _pack(
    waiting: Sequence[SharedBuffer], params: SocParams, order: LayerOrder, areas: Areas, high: int, padded: bool
) -> Packing:  # fmt: skip
    used = areas.begun
    while True:
        lv2 = FirstFit[Lived](high, params.lv1_word, order.apart, 0 if areas.touched is not None else areas.size)
        for run in _runs(used):
            lv2.place(areas.size, _InUse(run))
        offsets, moved = dict[int, int](), 0
        for buffer in waiting:
            offset = lv2.place(buffer.size + buffer.padding * padded, buffer)
            if offset is None:
                moved += buffer.size * buffer.uses
            else:
                offsets[id(buffer)] = offset
        found = areas.used(offsets)
        if found <= used:
            return Packing(offsets, moved, lv2.extent, padded)
        used |= found


def _runs(steps: frozenset[int]) -> Iterator[frozenset[int]]:
    """Yield the first and the last of steps that follow each other."""
    for first in sorted(step for step in steps if step - 1 not in steps):
        last = next(step for step in count(first) if step + 1 not in steps)
        yield frozenset({first, last})


def _improved(
    found: Packing, order: list[SharedBuffer], tries: int, pack: Callable[[list[SharedBuffer]], Packing]
) -> Packing:  # fmt: skip
    """Return a packing with less traffic, as far as it helps to offer LV2 to a buffer without a place before all
    others, largest traffic first."""
    at = 0
    while tries and found.moved:
        outside = sorted(
            (one for one in order if id(one) not in found.offsets), key=lambda one: (-one.size * one.uses, one.start)
        )
        if at >= len(outside):
            break
        other = [outside[at], *(one for one in order if one is not outside[at])]
        packed, tries = pack(other), tries - 1
        if packed.moved < found.moved:
            found, order, at = packed, other, 0
        else:
            at += 1
    return found


def best_packing(
    waiting: Sequence[SharedBuffer], params: SocParams, order: LayerOrder, areas: Areas, high: int, tries: int = 0
) -> Packing:  # fmt: skip
    """Return the packing with the least traffic to DRAM of a few, and of up to ``tries`` that come from it; padding
    goes if it costs any."""

    def best(padded: bool) -> Packing:
        orders = [sorted(waiting, key=key) for key in _ORDERS]
        packed = [_pack(one, params, order, areas, high, padded) for one in orders]
        found, first = min(zip(packed, orders, strict=True), key=lambda pair: (pair[0].moved, pair[0].extent))
        return _improved(found, first, tries, lambda one: _pack(one, params, order, areas, high, padded))

    spread = best(True)
    if not any(buffer.padding for buffer in waiting):
        return spread
    dense = best(False)
    return dense if dense.moved < spread.moved else spread
