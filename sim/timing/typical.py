"""Estimates durations of instructions, in cycles: what the tiler compares and the scheduler orders by."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from hw.contract.isa import Op
from hw.contract.params import SocParams
from hw.contract.timing import UNIT_START

_DRAM_OPS = (Op.LD2, Op.ST2)


def copy_cycles(op: Op, runs: int, length: int, params: SocParams, engines: int = 1) -> int:
    """Return the cycles of a copy of ``runs`` runs of ``length`` bytes while ``engines`` share DRAM."""
    if op in _DRAM_OPS:
        moved = engines * runs * -(-length // params.dram_word) * params.dram_word
        return UNIT_START + params.dram_latency + ceil(moved / params.dram_bytes_per_cycle)
    return UNIT_START + runs * -(-length // params.lv1_word)


def load_cycles(runs: int, length: int, params: SocParams) -> float:
    """Return the cycles of DRAM for loads of ``runs`` runs of ``length`` bytes that lie apart, whichever engines ask
    for them. Bursts in flight are limited, so that a short one takes its share of the time from its address to its
    data."""
    bursts = -(-length // (params.axi_burst_beats * params.dram_word))
    turn = (params.dram_latency + params.dram_row_miss) / params.axi_outstanding
    words = -(-length // params.dram_word) * params.dram_word
    return runs * max(words / params.dram_bytes_per_cycle, bursts * turn)


def mac_cycles(blocks: int, pixels: int, params: SocParams) -> int:
    """Return the cycles of ``blocks`` weight blocks over ``pixels`` pixels; loading a block takes as long as ``rows``
    pixels."""
    return UNIT_START + blocks * max(pixels, params.rows)


def vec_cycles(vectors: int, window: int) -> int:
    """Return the cycles of ``vectors`` vectors of ``window`` elements each."""
    return UNIT_START + vectors * window


def insn_cycles(op: Op, fields: Mapping[str, Any], params: SocParams, engines: int = 1) -> int:
    """Return the estimated cycles of one instruction while ``engines`` share DRAM."""
    loops = fields.get("n2", 1) * fields.get("n1", 1) * fields.get("n0", 1)
    if op is Op.MAC:
        return mac_cycles(loops, fields.get("p1", 1) * fields.get("p0", 1), params)
    if op is Op.VEC:
        return vec_cycles(loops, fields.get("k1", 1) * fields.get("k0", 1))
    return copy_cycles(op, loops, fields.get("len", 1), params, engines)
