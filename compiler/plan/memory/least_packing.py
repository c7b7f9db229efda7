"""The least memory in which buffers with lives are packed with nothing left out."""

from collections.abc import Sequence

from compiler.plan.memory.first_fit import ENDLESS
from compiler.plan.memory.packing import Areas, best_packing
from compiler.plan.memory.place import TRIES
from compiler.plan.memory.sharing import SharedBuffer
from compiler.plan.regions.layer_order import Chain
from hw.contract.params import SocParams


def least_packing(buffers: Sequence[tuple[int, int, int]], bound: int, step: int, params: SocParams) -> list[int]:
    """Return offsets of ``buffers`` (bytes, first and last step), packed as tensors are, by bisection to ``step`` bytes
    between ``bound``, which no packing is below and is tried first, and what first fit takes."""
    waiting = [SharedBuffer(size, first, last, uses=2, users={first, last}) for size, first, last in buffers]
    found = best_packing(waiting, params, Chain(), Areas(0), ENDLESS)
    low, high, at = bound - step, found.extent, bound
    while high - low > step:
        tried = best_packing(waiting, params, Chain(), Areas(0), at, TRIES)
        if tried.moved:
            low = at
        else:
            found, high = tried, tried.extent
        at = low + (high - low) // (2 * step) * step
    return [found.offsets[id(one)] for one in waiting]
