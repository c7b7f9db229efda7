"""Counts the cycles of MAC and VEC instructions within their units (``hw/mac``, ``hw/vec``), with ports that never
refuse."""

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.contract.isa import TABLE_BYTES, VEC_CHANNEL_BYTES, WIDE_TABLE_BYTES, VecOp
from hw.contract.params import SocParams
from hw.contract.timing import TABLE_ROW_BYTES, VEC_CHECK, VEC_PIPELINE, VEC_RAW_PIPELINE, VEC_RECORD
from sim.cost.exact.copies import NUMBERED
from sim.cost.exact.excerpt import MOST, excerpt

MAC_FIELDS = ("n2", "n1", "n0", "p1", "p0", "acc_s", "accumulate")
#: Addresses count modulo a row of all banks of LV1.
VEC_FIELDS = (
    "op", "table", "per_channel", "across", "n2", "n1", "n0", "k1", "k0", "src_acc", "b_en", "a", "b",
    "a_s2", "a_s1", "a_s0", "a_k1", "a_k0", "b_s2", "b_s1", "b_s0", "d_s2", "d_s1", "d_s0",
)  # fmt: skip
_VECTOR_LOOPS = ("n2", "n1", "n0", "k1", "k0")
_FEW_VECTORS = 1 << 12


class MacBlocks(NamedTuple):
    """Holds ``blocks`` of weights, each followed by the next after ``period`` cycles; the last fires for ``last``."""

    blocks: int
    period: int
    last: int
    accepted: int  #: pixels in all


@lru_cache(maxsize=1 << 14)
def mac_blocks(
    params: SocParams, n2: int, n1: int, n0: int, p1: int, p0: int, acc_s: int, accumulate: int
) -> MacBlocks:
    """Return the blocks of the MAC instruction with ``MAC_FIELDS`` of the values given.

    A pixel waits for the two before it where it adds to the accumulator of one of them.
    """
    pixels, blocks = p1 * p0, n2 * n1 * n0
    added = pixels + _clashes(p1, p0, acc_s)
    first = added if accumulate else pixels
    period = max(added, params.rows)
    if blocks == 1:
        return MacBlocks(1, max(first, params.rows), first, pixels)
    return MacBlocks(blocks, period, added, blocks * pixels)


def _clashes(p1: int, p0: int, acc_s: int) -> int:
    """Return the cycles that pixels of one block wait for each other."""
    if p1 == 1 or p0 > 2 or acc_s >= p0:
        return 0
    time = 0
    fired: dict[int, int] = {}
    for y in range(p1):
        for x in range(p0):
            row = y * acc_s + x
            time = max(time + 1, fired.get(row, -3) + 3)
            fired[row] = time
    return time - p1 * p0


class _VecSteps(NamedTuple):
    setup: int
    steps: int
    tail: int
    accepted: int
    fields: tuple[int, ...] = ()


class VecSteps(_VecSteps):
    """Holds the steps of a VEC instruction: ``setup`` cycles from acceptance to the first of ``steps``, one per cycle,
    and ``tail`` from the last to the signal. ``accepted`` steps bring an operand, the others wait for one. ``fields``:
    the values of ``VEC_FIELDS``; ``core`` and ``kept`` as in ``CopySteps``."""

    core: int = 0
    kept: Any = None


@lru_cache(maxsize=1 << 14)
def vec_steps(params: SocParams, *values: int) -> VecSteps:
    """Return the steps of the VEC instruction with ``VEC_FIELDS`` of the values given."""
    op, table, per_channel, across, n2, n1, n0, k1, k0, src_acc, b_en, *_ = values
    accepted = n2 * n1 * n0 * k1 * k0
    f = dict(zip(VEC_FIELDS, values, strict=True))
    steps = accepted + (_operand_conflicts(params, f) if b_en and not src_acc else 0)
    if op == VecOp.RAW:
        return VecSteps(VEC_CHECK + 1, steps, VEC_RAW_PIPELINE, accepted, values)
    block, tables = vec_words(params, op, table, n0 if per_channel else 1)
    setup = VEC_CHECK + block + 2
    if tables:
        rows = params.lv1_word // TABLE_ROW_BYTES
        setup += 1 + (tables - 1) * (rows + 1) + rows + 1
    return VecSteps(setup, steps, VEC_PIPELINE + (record_cycles(params) if across else 0), accepted, values)


def vec_words(params: SocParams, op: int, table: int, groups: int) -> tuple[int, int]:
    """Return how many LV1 words a VEC instruction reads before its first operand: of the parameter block with the
    entries of ``groups`` vectors of channels, and of its table."""
    block = params.vec_header_bytes + groups * params.vec_lanes * VEC_CHANNEL_BYTES
    table_bytes = WIDE_TABLE_BYTES if op == VecOp.LOOKUP else TABLE_BYTES if table else 0
    return block // params.lv1_word, table_bytes // params.lv1_word


@lru_cache(maxsize=1 << 8)
def parameters_of_vec(params: SocParams, values: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Return the word of LV1 that the VEC instruction with ``VEC_FIELDS`` of ``values`` asks for in each cycle before
    its first operand, counted from its first parameter, and -1 where there is none. Lanes take a word of the table in
    ``TABLE_ROW_BYTES`` at a time, and the next is asked for as they end. The table is taken to lie behind the
    parameters."""
    f = dict(zip(VEC_FIELDS, values, strict=True))
    if f["op"] == VecOp.RAW:
        return np.empty(0, np.int32)
    block, tables = vec_words(params, f["op"], f["table"], f["n0"] if f["per_channel"] else 1)
    table = np.full((tables, params.lv1_word // TABLE_ROW_BYTES + 1), -1, np.int32)
    table[:, -1] = block + np.arange(tables)
    # The first word of the table waits only until the last parameter has come.
    return np.concatenate([np.arange(block, dtype=np.int32), table.reshape(-1)[max(0, table.shape[1] - 2) :]])


def record_cycles(params: SocParams) -> int:
    """Return the cycles by which the record of a row leaves later than a vector of results."""
    return VEC_RECORD + (params.vec_lanes - 1).bit_length()


def _operand_conflicts(params: SocParams, f: dict[str, int]) -> int:
    """Return how many steps ask for a word of A and one of B in the same bank of LV1: they take a cycle more."""
    f, whole, part = excerpt(f, _VECTOR_LOOPS, MOST)
    i2, i1, i0, j1, j0 = np.ogrid[: f["n2"], : f["n1"], : f["n0"], : f["k1"], : f["k0"]]
    a = f["a"] + i2 * f["a_s2"] + i1 * f["a_s1"] + i0 * f["a_s0"] + j1 * f["a_k1"] + j0 * f["a_k0"]
    b = f["b"] + i2 * f["b_s2"] + i1 * f["b_s1"] + i0 * f["b_s0"] + 0 * (j1 + j0)
    a, b = (operand.reshape(-1) // params.lv1_word for operand in (a, b))
    fresh = [np.concatenate([[True], words[1:] != words[:-1]]) for words in (a, b)]
    return int((fresh[0] & fresh[1] & ((a - b) % params.lv1_banks == 0)).sum()) * whole // part


class VecWords(NamedTuple):
    """Holds the words of LV1 that the steps of a VEC instruction ask for: an int32 for each, below 0 where there is
    none. ``a`` and ``b``: those of operands, None without; ``writes``: those of results, which follow the step by the
    length of the pipeline, counted from the word of the first. Where results fill one word after the other, ``period``
    steps each, there are no ``writes``."""

    a: npt.NDArray[np.int32] | None
    b: npt.NDArray[np.int32] | None
    writes: npt.NDArray[np.int32] | None
    period: int


@lru_cache(maxsize=1 << 11)
def words_of_vec(params: SocParams, values: tuple[int, ...]) -> VecWords:
    """Return what the steps of the VEC instruction with ``VEC_FIELDS`` of ``values`` ask of LV1, as far as they are
    walked through."""
    f = dict(zip(VEC_FIELDS, values, strict=True))
    window, groups = f["k1"] * f["k0"], f["n0"]
    lanes = params.vec_lanes
    rows = (f["n1"] == 1 or f["d_s1"] == groups * lanes) and (f["n2"] == 1 or f["d_s2"] == f["n1"] * f["d_s1"])
    in_order = (groups == 1 or f["d_s0"] == lanes) and rows
    period = window * (params.lv1_word // lanes) if in_order else 0
    if in_order and f["src_acc"]:
        return VecWords(None, None, None, period)
    f, *_ = excerpt(f, _VECTOR_LOOPS, MOST)
    i2, i1, i0, j1, j0 = np.ogrid[: f["n2"], : f["n1"], : f["n0"], : f["k1"], : f["k0"]]
    a = b = writes = None
    if not f["src_acc"]:
        a = _fresh(f["a"] + i2 * f["a_s2"] + i1 * f["a_s1"] + i0 * f["a_s0"] + j1 * f["a_k1"] + j0 * f["a_k0"], params)
    if f["b_en"]:
        b = _fresh(f["b"] + i2 * f["b_s2"] + i1 * f["b_s1"] + i0 * f["b_s0"] + 0 * (j1 + j0), params)
    if not in_order:
        d = i2 * f["d_s2"] + i1 * f["d_s1"] + i0 * f["d_s0"] + 0 * (j1 + j0)
        writes = np.ascontiguousarray(
            _fresh(d[::-1, ::-1, ::-1, ::-1, ::-1], params)[::-1]
        )  # a word leaves at its last
    return VecWords(a, b, writes, period)


def _fresh(addresses: npt.NDArray[np.int64], params: SocParams) -> npt.NDArray[np.int32]:
    """Return the words of LV1 at ``addresses``, and -1 where it is that of the address before."""
    words = addresses.reshape(-1) // params.lv1_word
    fresh = np.concatenate([[True], words[1:] != words[:-1]])
    return np.ascontiguousarray(np.where(fresh, words % NUMBERED, -1), np.int32)


def looks_long(f: Mapping[str, int]) -> bool:
    """Return whether it takes long to work out what a VEC instruction with the fields ``f`` takes."""
    return bool(f["b_en"]) and not f["src_acc"] and prod(f[name] for name in _VECTOR_LOOPS) > _FEW_VECTORS
