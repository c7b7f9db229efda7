"""Defines shapes: what instructions ask of their units, in numbers. What a shape costs is said by
:mod:`sim.cost.units`.

A *nominal* shape counts words as if all data lay at the beginning of one, as estimates do that know no addresses. A
*placed* shape counts the words, bursts and rows that the addresses of an instruction touch, however the driver moves
its segments by whole pages.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from hw.contract.isa import FORMATS, Insn, Op
from hw.contract.params import SocParams
from sim.cost.exact.copies import COPY_FIELDS, run_steps, runs_of
from sim.cost.exact.excerpt import MOST
from sim.cost.exact.pipelines import vec_words

DRAM_OPS = (Op.LD2, Op.ST2)
_RUNS_COUNTED = 256  #: runs of a copy whose bursts are counted one by one; the driver aligns segments to pages
#: Fields of a copy of which only the place in a word matters.
_ALIGNED = ("src", "dst", *(f"{side}_s{k}" for side in ("src", "dst") for k in range(3)))
_LOOPS = ("n2", "n1", "n0")
#: What a shape depends on, by operation.
_MATTERS = dict.fromkeys((Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0), COPY_FIELDS) | {
    Op.MAC: (*_LOOPS, "p1", "p0", "acc_s"),
    Op.VEC: ("op", *_LOOPS, "k1", "k0", "src_acc", "b_en", "per_channel", "table", "across"),
}
_DEFAULTS = {op: {f.name: f.default for f in FORMATS[op] if f.name in names} for op, names in _MATTERS.items()}
#: By operation the places of addresses among them.
_ADDRESSES = {op: [i for i, name in enumerate(names) if name in ("src", "dst")] for op, names in _DEFAULTS.items()}

Fields = Mapping[str, int]  #: the fields that matter, by name


class MacShape(NamedTuple):
    """Holds ``blocks`` of weights over ``pixels`` each, which wait ``clashes`` cycles for sums that they return to."""

    blocks: int
    pixels: int
    clashes: int = 0


class VecShape(NamedTuple):
    """Holds ``vectors`` of results from ``window`` elements each of so many ``operands`` in LV1 (none: from
    accumulators), behind ``parameters`` and ``tables`` words of LV1. With ``across``, a record of each row goes
    along."""

    vectors: float
    window: float = 1
    operands: int = 1
    parameters: int = 0
    tables: int = 0
    across: bool = False


class RunShape(NamedTuple):
    """Holds runs of a copy, so many ``alike``: words ``read``, ``steps`` of the realigner, and words ``written``."""

    alike: int
    read: int
    steps: int
    written: int


class CopyShape(NamedTuple):
    """Is a copy of ``runs``, which touch so many ``bursts`` and ``rows`` of DRAM."""

    op: Op
    runs: tuple[RunShape, ...]
    bursts: int = 0
    rows: int = 0


Shape = MacShape | VecShape | CopyShape


def nominal_shape(op: Op, fields: Mapping[str, Any], params: SocParams) -> Shape:
    """Return the shape of an instruction whose addresses do not count."""
    loops = fields.get("n2", 1) * fields.get("n1", 1) * fields.get("n0", 1)
    if op is Op.MAC:
        return MacShape(loops, fields.get("p1", 1) * fields.get("p0", 1))
    if op is Op.VEC:
        return VecShape(loops, fields.get("k1", 1) * fields.get("k0", 1))
    return nominal_copy(op, loops, fields.get("len", 1), params)


def nominal_copy(op: Op, runs: int, length: int, params: SocParams) -> CopyShape:
    """Return the shape of a copy of ``runs`` runs of ``length`` bytes."""
    words = -(-length // (params.dram_word if op in DRAM_OPS else params.lv1_word))
    return CopyShape(op, (RunShape(runs, words, words, words),))


def placed_shape(insn: Insn, params: SocParams) -> Shape:
    """Return the shape of an instruction where it lies."""
    f = _fields(insn)
    loops = f["n2"] * f["n1"] * f["n0"]
    if insn.op is Op.MAC:
        pixels = f["p1"] * f["p0"]
        return MacShape(loops, pixels, 2 * pixels - 2 if f["p1"] > 1 and f["acc_s"] < f["p0"] else 0)
    if insn.op is Op.VEC:
        words = vec_words(params, f["op"], f["table"], f["n0"] if f["per_channel"] else 1)
        operands = 0 if f["src_acc"] else 1 + bool(f["b_en"])
        return VecShape(loops, f["k1"] * f["k0"], operands, *words, bool(f["across"]))
    if insn.op in DRAM_OPS:
        return _bus_copy(insn.op, f, params)
    aligned = (f[name] % params.lv1_word if name in _ALIGNED else f[name] for name in COPY_FIELDS)
    return CopyShape(insn.op, _runs(params.lv1_word, *aligned))


def essence(insn: Insn, params: SocParams) -> Insn:
    """Return the shortest instruction that has the shape of ``insn``, so that instructions of equal duration become
    equal: only the fields that matter, and addresses counted from the DRAM row, or the word on chip, that they lie
    in."""
    return essence_of(insn.op, essential(insn, params))


def essence_of(op: Op, values: Iterable[int]) -> Insn:
    """Return the instruction whose :func:`essential` fields have these ``values``."""
    return Insn(op, dict(zip(_DEFAULTS.get(op, ()), values, strict=True)))


def essential(insn: Insn, params: SocParams) -> list[int]:
    """Return the values of the fields of :func:`essence`, which are none where no field matters."""
    given = insn.fields.get
    values = [given(name, default) for name, default in _DEFAULTS.get(insn.op, {}).items()]
    grain = _dram_grain(params) if insn.op in DRAM_OPS else params.lv1_word
    for place in _ADDRESSES.get(insn.op, ()):
        values[place] %= grain
    return values


def _dram_grain(params: SocParams) -> int:
    """Return the bytes from whose start addresses of copies from and to DRAM count."""
    return max(params.dram_row_bytes, params.axi_burst_beats * params.dram_word, params.lv1_word)


def _fields(insn: Insn) -> Fields:
    defaults = _DEFAULTS[insn.op]
    if insn.fields.keys() == defaults.keys():  # as essences are
        return insn.fields
    return {name: insn.fields.get(name, default) for name, default in defaults.items()}


def _words(offset: int, length: int, word: int, step: int = 0) -> int:
    """Return the most words that ``length`` bytes touch at ``offset`` or any multiple of ``step`` behind it."""
    if length <= 0:
        return 0
    grain = gcd(step, word)
    return (offset % grain + word - grain + length - 1) // word + 1


def _step(f: Fields, side: str) -> int:
    """Return what all distances between runs are multiples of; 0 with a single run."""
    return gcd(*(f[f"{side}_s{k}"] for k in range(3) if f[f"n{k}"] > 1))


@lru_cache(maxsize=1 << 16)
def _runs(word: int, *values: int) -> tuple[RunShape, ...]:
    """Return the runs of a copy between scratchpads with ``COPY_FIELDS`` of ``values``."""
    fields = dict(zip(COPY_FIELDS, values, strict=True))
    count = fields["n2"] * fields["n1"] * fields["n0"]
    if count > MOST:  # each as long as any may be
        words = _words(0, fields["len"], word, 1)
        return (RunShape(count, words + 1, words + 1, words),)
    steps, read = run_steps(fields, runs := runs_of(fields), word)
    written = (runs.dst % word + fields["len"] - 1) // word + 1
    kinds, counts = np.unique(np.stack([read, steps, written]), axis=1, return_counts=True)
    return tuple(RunShape(int(many), *map(int, kind)) for many, kind in zip(counts, kinds.T, strict=True))


def _bus_copy(op: Op, f: Fields, params: SocParams) -> CopyShape:
    word, row = params.dram_word, params.dram_row_bytes
    burst, grain = params.axi_burst_beats * word, _dram_grain(params)
    placed = (f[name] % grain if name in ("src", "dst") else f[name] for name in COPY_FIELDS)
    return _bus_runs(op, word, burst, row, *placed)


@lru_cache(maxsize=1 << 16)
def _bus_runs(op: Op, word: int, burst: int, row: int, *values: int) -> CopyShape:
    """Return the shape of a copy from or to DRAM with ``COPY_FIELDS`` of ``values``."""
    f = dict(zip(COPY_FIELDS, values, strict=True))
    runs = f["n2"] * f["n1"] * f["n0"]
    src_step, dst_step = (_step(f, side) for side in ("src", "dst"))
    read = min(f["hi"], f["len"]) - f["lo"]
    src = _words(f["src"] + f["lo"], read, word, src_step)
    shifted = src_step % word != 0 or dst_step % word != 0 or (f["src"] - f["dst"]) % word != 0
    words = max(src, _words(f["dst"], f["len"], word, dst_step) + shifted)
    side, length, start = ("src", read, f["src"] + f["lo"]) if op is Op.LD2 else ("dst", f["len"], f["dst"])
    starts, exact = [start], runs <= _RUNS_COUNTED
    for k in range(3 if exact else 0):
        starts = [at + i * f[f"{side}_s{k}"] for at in starts for i in range(f[f"n{k}"])]

    def touched(size: int) -> int:
        """Return the blocks of ``size`` bytes that the runs touch, one after the other."""
        return sum(_words(at, length, size, 0 if exact else 1) for at in starts) * (1 if exact else runs)

    return CopyShape(op, (RunShape(runs, words, words, words),), touched(burst), touched(row))
