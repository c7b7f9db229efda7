"""The size of the tiles of layers that only move bytes."""

from compiler.backend.memory.operand import Lv1Area, StagingArea
from hw.contract.params import SocParams

_LARGEST = 8192  #: bytes: enough to hide start-up, small enough to overlap early


def move_tile_bytes(params: SocParams, lv1: Lv1Area, staging: StagingArea) -> int:
    """Return the bytes of a tile: two buffers fit ``lv1``, and four the staging area."""
    word = params.lv1_word
    return min(_LARGEST, lv1.size // 2, staging.size // 4) // word * word
