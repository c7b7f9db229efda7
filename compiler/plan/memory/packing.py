"""Which buffers of tensors lie in LV2, and where: several orders of first fit, searches where these leave out
what should stay, and the staging areas beside them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compiler.plan.memory.box_packing import boxed_packing
from compiler.plan.memory.first_fit import NOWHERE, Integers, aligned, first_fit
from compiler.plan.memory.packing_beam import beam_packing
from compiler.plan.memory.packing_search import canonical_packing
from compiler.plan.memory.residents import BufferLife, residents
from compiler.plan.memory.sharing import SharedBuffer
from compiler.plan.regions.layer_order import LayerOrder
from hw.contract.params import SocParams

#: Orders in which buffers are offered LV2: what lives long and large either last or first.
_ORDERS: tuple[Callable[[SharedBuffer], tuple[int, int]], ...] = (
    lambda buffer: (buffer.size * (buffer.end - buffer.start + 1), buffer.start),
    lambda buffer: (-buffer.size, buffer.start),
    lambda buffer: (-buffer.size * (buffer.end - buffer.start + 1), buffer.start),
)

#: Searches for a place of all that should stay, in turn, and the packings of some of these that each looks at.
_SEARCHES = (canonical_packing, boxed_packing, beam_packing)
_NODES = 10_000


@dataclass(frozen=True)
class Areas:
    """The staging areas, the first ``size`` bytes. They are in use always, or, if ``touched`` has by step of a chain
    the buffers that pass them where they lie in DRAM, in steps one of whose buffers does, and in those of ``used``."""

    size: int
    touched: Sequence[Sequence[SharedBuffer]] | None = None
    used: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Packing:
    """LV2 offsets by identity of the buffer; bytes that pass from or to DRAM because a buffer did not fit; end of LV2;
    whether pixels have their pitch, or are dense."""

    offsets: dict[int, int]
    moved: int
    extent: int
    padded: bool


class _Packer:
    """Packs buffers that are ``waiting`` for a place into the ``high`` bytes of LV2, of words of ``word`` bytes. They
    are known by their numbers."""

    def __init__(
        self, waiting: Sequence[SharedBuffer], word: int, order: LayerOrder, areas: Areas, high: int, *, padded: bool
    ) -> None:
        self._waiting, self._high, self._padded = waiting, high, padded
        self.traffic = np.array([one.size * one.uses for one in waiting], np.int64)
        self._sizes = aligned(np.array([one.size + one.padding * padded for one in waiting], np.int64), word)
        self._together = order.together(waiting)
        self._area = -(-areas.size // word) * word
        self._always = areas.touched is None
        touched = areas.touched or ()
        numbers = {id(one): number for number, one in enumerate(waiting)}
        #: By step: whether it uses the areas wherever these go, and which of these take it to them.
        self._begun = np.array(
            [at in areas.used or any(one.segment is not None for one in held) for at, held in enumerate(touched)],
            np.bool_,
        )
        self._touched = np.zeros((len(touched), len(waiting)), np.bool_)
        for step, held in enumerate(touched):
            self._touched[step, [numbers[id(one)] for one in held if id(one) in numbers]] = True
        lives = [(min(one.users), max(one.users)) for one in waiting] if not self._always else []
        self._lives = np.array(lives, np.int64).reshape(-1, 2)

    def pack(self, order: Sequence[int]) -> Packing:
        """Return what first fit makes of this order."""
        chosen, used = np.array(order, np.int64), self._begun
        while True:
            offsets = first_fit(chosen, self._sizes, self._bases(used), self._together, self._high)
            outside = offsets == NOWHERE
            found = used | self._touched[:, outside].any(axis=1)
            if (found == used).all():
                break
            used = found
        return self._packing(offsets, used)

    def searched(self) -> Packing | None:
        """Return a packing of all that should stay, None if none is found."""
        stay = np.array(self.residents, np.int64)
        lives = np.array([(min(one.users), max(one.users)) for one in self._waiting], np.int64).reshape(-1, 2)
        offsets = np.full(len(self._sizes), NOWHERE)
        outside = np.ones(len(self._sizes), np.bool_)
        outside[stay] = False
        used = self._begun | self._touched[:, outside].any(axis=1)
        buffers = lives[stay], self._sizes[stay], self._bases(used)[stay]
        searches = (search(*buffers, self._high, _NODES) for search in _SEARCHES)
        found = next((one for one in searches if one is not None), None)
        if found is None:
            return None
        offsets[stay] = found
        return self._packing(offsets, used)

    def _packing(self, offsets: Integers, used: npt.NDArray[np.bool_]) -> Packing:
        outside = offsets == NOWHERE
        low = self._area if self._always or used.any() else 0
        extent = max(low, int((offsets + self._sizes)[~outside].max(initial=0)))
        places = {id(one): int(at) for one, at in zip(self._waiting, offsets, strict=True) if at != NOWHERE}
        return Packing(places, int(self.traffic[outside].sum()), extent, self._padded)

    @cached_property
    def residents(self) -> list[int]:
        """The buffers that should stay, as far as sizes and lives say it: see :mod:`residents`."""
        users = [(min(one.users), max(one.users)) for one in self._waiting]
        candidates = [
            BufferLife(int(size), int(traffic), *life)
            for size, traffic, life in zip(self._sizes, self.traffic, users, strict=True)
        ]
        steps = max((last for _, last in users), default=-1) + 1
        if self._always:
            return residents(candidates, [()] * steps, [True] * steps, self._area, self._high)
        touched = [np.flatnonzero(held).tolist() for held in self._touched[:steps]]
        return residents(candidates, touched, self._begun[:steps].tolist(), self._area, self._high)

    def _bases(self, used: npt.NDArray[np.bool_]) -> Integers:
        """Return where each may lie at the lowest if the steps ``used`` use the areas."""
        if self._always:
            return np.full(len(self._sizes), self._area)
        before = np.concatenate([[0], np.cumsum(used)])
        return np.where(before[self._lives[:, 1] + 1] > before[self._lives[:, 0]], self._area, 0)


def _improved(
    found: Packing, order: list[int], tries: int, packer: _Packer, waiting: Sequence[SharedBuffer]
) -> Packing:
    """Return a packing with less traffic, as far as it helps to offer LV2 to a buffer without a place before all
    others, largest traffic first."""
    at = 0
    while tries and found.moved:
        outside = sorted(
            (one for one in order if id(waiting[one]) not in found.offsets),
            key=lambda one: (-packer.traffic[one], waiting[one].start),
        )
        if at >= len(outside):
            break
        other = [outside[at], *(one for one in order if one != outside[at])]
        packed, tries = packer.pack(other), tries - 1
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
        packer = _Packer(waiting, params.lv1_word, order, areas, high, padded=padded)
        orders = [sorted(range(len(waiting)), key=lambda one: key(waiting[one])) for key in _ORDERS]
        packed = [packer.pack(one) for one in orders]
        if min(one.moved for one in packed) and order.in_turn:
            stay = set(packer.residents)
            orders += [[*(i for i in one if i in stay), *(i for i in one if i not in stay)] for one in orders]
            packed += [packer.pack(one) for one in orders[len(_ORDERS) :]]
        found, first = min(zip(packed, orders, strict=True), key=lambda pair: (pair[0].moved, pair[0].extent))
        found = _improved(found, first, tries, packer, waiting)
        searched = packer.searched() if tries and found.moved and order.in_turn else None
        return searched if searched and searched.moved < found.moved else found

    spread = best(True)
    if not any(buffer.padding for buffer in waiting):
        return spread
    dense = best(False)
    return dense if dense.moved < spread.moved else spread
