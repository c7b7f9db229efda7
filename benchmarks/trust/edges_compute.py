"""Edges of MAC and VEC: the ends of the memories that they read and write, and fields that do not fit together."""

import math
from collections.abc import Iterator

from benchmarks.trust.edges_case import WELL, EdgeCase, one, unit
from benchmarks.trust.words import raw_word
from hw.contract.isa import Op
from hw.contract.job import Fault
from hw.contract.params import SocParams

_LIMIT, _ILLEGAL = unit(Op.MAC, Fault.LIMIT), unit(Op.MAC, Fault.ILLEGAL)
_BEYOND, _ODD = unit(Op.VEC, Fault.LIMIT), unit(Op.VEC, Fault.ILLEGAL)
_LIN, _MUL, _MAX, _SUM, _RAW, _LOOKUP, _MOMENTS, _WIDE = range(8)
_NAMES = ("LIN", "MUL", "MAX", "SUM", "RAW", "LOOKUP", "MOMENTS", "WIDE")

#: For each operation a legal instruction, and what makes of it a legal one and what does not.
_TOGGLES: dict[int, tuple[dict[str, int], tuple[str, ...]]] = {
    _LIN: ({}, ("src_acc", "b_en", "a_signed", "b_signed", "table", "per_channel", "planes n2=3", "b_en row")),
    _MUL: ({"b_en": 1}, ("a_signed", "b_signed", "table", "per_channel", "planes n2=3")),
    _MAX: (
        {}, ("a_signed", "b_signed", "table", "per_channel", "across", "planes n2=3", "k0=2", "k1=2", "across tail=1",
         "across k0=2"),
    ),
    _SUM: (
        {}, ("a_signed", "b_signed", "table", "per_channel", "across", "planes n2=3", "k0=2", "k1=2", "across tail=1",
         "across k0=2"),
    ),
    _RAW: ({"src_acc": 1, "n2": 4}, ()),
    _LOOKUP: (
        {"b_en": 1, "row": 1},
        ("a_signed", "b_signed", "per_channel", "across", "planes n2=3", "across k0=2", "across tail=1"),
    ),
    _MOMENTS: (
        {"across": 1}, ("plain", "a_signed", "b_signed", "tail=1", "k0=2", "k1=2", "across tail=1", "across k0=2"),
    ),
    _WIDE: ({}, ("a_signed", "b_signed", "table", "per_channel", "planes n2=3", "k0=2", "k1=2")),
}  # fmt: skip
_CHANGES = (
    "src_acc", "b_en", "a_signed", "b_signed", "table", "per_channel", "across", "tail=1", "row", "planes", "plain",
    "k0=2", "k1=2", "planes n2=3", "planes n2=3 table", "across tail=1", "across k0=2", "b_en row", "across n0=2",
    "across per_channel", "across table", "across planes n2=3",
)  # fmt: skip


def mac(params: SocParams) -> Iterator[EdgeCase]:
    """Activations, weights and accumulators of MAC."""
    acts, wgts = params.lv0_act_bytes // params.rows, params.lv0_wgt_bytes // params.rows
    rows = params.lv0_acc_rows

    def case(what: str, fields: dict[str, int], beyond: bool) -> EdgeCase:
        return one("MAC", what, raw_word(Op.MAC, fields), _LIMIT if beyond else WELL)

    for mode, taps in ((0, 1), (1, min(params.pes, params.rows))):
        for by in (-1, 0, 1):
            last = acts - taps + by
            yield case(f"act, mode {mode}, end {by:+}", {"mode": mode, "act": last}, by > 0)
            for count, stride in (("p0", "p0_s"), ("p1", "p1_s"), ("n0", "k0_s"), ("n1", "k1_s"), ("n2", "k2_s")):
                up = {"mode": mode, count: 3, "act": last - 10, stride: 5}
                down = {"mode": mode, count: 3, "act": 10 + by, stride: -5}
                if count in ("p0", "p1"):
                    up["acc_s"] = down["acc_s"] = 1
                yield case(f"act, mode {mode}, up by {count} {by:+}", up, by > 0)
                yield case(f"act, mode {mode}, down by {count} {by:+}", down, by < 0)
    for by in (-1, 0, 1):
        for blocks in ({}, {"n0": 2}, {"n1": 3}, {"n2": 2}, {"n2": 2, "n1": 2, "n0": 2}):
            words = params.rows * math.prod(blocks.values())
            yield case(f"wgt, {blocks}, end {by:+}", {**blocks, "wgt": wgts - words + by}, by > 0)
        yield case(f"acc, end {by:+}", {"acc": rows - 1 + by}, by > 0)
        yield case(f"acc by p0, end {by:+}", {"acc": rows - 4 + by, "p0": 4}, by > 0)
        yield case(f"acc by p1, end {by:+}", {"acc": rows - 5 + by, "p1": 3, "acc_s": 2}, by > 0)
        yield case(f"acc by both, end {by:+}", {"acc": rows - 7 + by, "p1": 2, "acc_s": 4, "p0": 3}, by > 0)
    for what, fields in (("acc", {"acc": 4095}), ("act", {"act": 65535}), ("wgt", {"wgt": 65535})):
        yield case(f"{what} as large as it gets", fields, True)
    for mode in range(4):
        yield one("MAC", f"mode {mode}", raw_word(Op.MAC, {"mode": mode}), WELL if mode < 2 else _ILLEGAL)


def vec(params: SocParams) -> Iterator[EdgeCase]:
    """Operands, parameter blocks and tables of VEC, and its flags."""
    yield from _ends(params)
    yield from _blocks(params)
    yield from _alignment(params)
    yield from _flags(params)


def _case(what: str, op: int, fields: dict[str, int], beyond: bool) -> EdgeCase:
    return one("VEC", f"{_NAMES[op]}: {what}", raw_word(Op.VEC, {"op": op, **fields}), _BEYOND if beyond else WELL)


def _ends(params: SocParams) -> Iterator[EdgeCase]:
    lanes, size, rows = params.vec_lanes, params.lv1_bytes, params.lv0_acc_rows
    end, step = size - lanes, 3 * lanes
    loops = (("n2", "s2"), ("n1", "s1"), ("n0", "s0"), ("k1", "k1"), ("k0", "k0"))
    operands: tuple[tuple[str, int, dict[str, int], int], ...] = (
        ("a", _LIN, {}, 3), ("a", _MAX, {}, 5), ("b", _LIN, {"b_en": 1}, 3), ("b", _MUL, {"b_en": 1}, 3),
        ("b", _LOOKUP, {"b_en": 1, "row": 1}, 3), ("d", _LIN, {}, 3), ("d", _MOMENTS, {"across": 1}, 2),
    )  # fmt: skip
    for name, op, flags, count in operands:
        for by in (-lanes, 0, lanes):
            yield _case(f"{name}, end {by:+}", op, {**flags, name: end + by}, by > 0)
            for loop, stride in loops[:count]:
                up = {**flags, loop: 3, name: end - 2 * step + by, f"{name}_{stride}": step}
                down = {**flags, loop: 3, name: 2 * step + by, f"{name}_{stride}": -step}
                yield _case(f"{name} up by {loop}, end {by:+}", op, up, by > 0)
                yield _case(f"{name} down by {loop}, start {by:+}", op, down, by < 0)
        for at in (size, 2 * size, (1 << 24) - lanes):
            yield _case(f"{name} at {at:#x}", op, {**flags, name: at}, True)
    for by in (-1, 0, 1):
        acc = {"src_acc": 1}
        yield _case(f"acc, end {by:+}", _LIN, {**acc, "a": rows - 1 + by}, by > 0)
        yield _case(f"acc, end {by:+}", _RAW, {**acc, "n2": 4, "a": rows - 1 + by}, by > 0)
        for loop, stride in loops[:2]:
            up = {**acc, loop: 3, "a": rows - 5 + by, f"a_{stride}": 2}
            yield _case(f"acc up by {loop}, end {by:+}", _LIN, up, by > 0)
            down = {**acc, loop: 3, "a": 4 + by, f"a_{stride}": -2}
            yield _case(f"acc down by {loop}, start {by:+}", _LIN, down, by < 0)
    for by in (0, lanes):
        raw = {"src_acc": 1, "n2": 4, "d": size - 4 * lanes + by, "d_s2": lanes}
        yield _case(f"d, end {by:+}", _RAW, raw, by > 0)


def _blocks(params: SocParams) -> Iterator[EdgeCase]:
    size, word, groups = params.lv1_bytes, params.lv1_word, params.pes * params.cols // params.vec_lanes
    header = max(32, word)
    for by in (-word, 0, word):
        p = size - -(-(header + 8 * params.vec_lanes) // word) * word + by
        yield _case(f"p, end {by:+}", _LIN, {"p": p}, by > 0)
        yield _case(f"p, end {by:+}", _MOMENTS, {"across": 1, "p": p}, by > 0)
        p = size - (header + 8 * params.vec_lanes * groups) + by
        yield _case(f"p of {groups} groups, end {by:+}", _LIN, {"per_channel": 1, "n0": groups, "p": p}, by > 0)
        yield _case(f"table, end {by:+}", _LIN, {"table": 1, "t": size - 256 + by}, by > 0)
        yield _case(f"table, end {by:+}", _LOOKUP, {"b_en": 1, "row": 1, "t": size - 1024 + by}, by > 0)
        across = {"b_en": 1, "row": 1, "across": 1, "t": size - 1024 + by}
        yield _case(f"table across, end {by:+}", _LOOKUP, across, by > 0)
    top = (1 << 24) - word
    yield _case("p as large as it gets", _LIN, {"p": top}, True)
    yield _case("t as large as it gets", _LIN, {"table": 1, "t": top}, True)
    yield _case("t as large as it gets, which does not count", _LIN, {"t": top}, False)
    yield _case("p and t as large as they get, which do not count", _RAW, {"src_acc": 1, "n2": 4, "p": top, "t": top},
                False)  # fmt: skip


def _alignment(params: SocParams) -> Iterator[EdgeCase]:
    lanes, word = params.vec_lanes, params.lv1_word

    def case(what: str, fields: dict[str, int], legal: bool) -> EdgeCase:
        return one("VEC fields", what, raw_word(Op.VEC, fields), WELL if legal else _ODD)

    both, strides = {"op": _LIN, "b_en": 1}, ("s2", "s1", "s0")
    names = ["a", "b", "d", *(f"{name}_{s}" for name in "abd" for s in strides), "a_k1", "a_k0"]
    for name in names:
        for by in (1, lanes // 2, lanes):
            yield case(f"{name} = {by}", {**both, name: by}, by == lanes)
    for name in ("b", "b_s0"):
        yield case(f"{name} = 1, without B", {"op": _LIN, name: 1}, True)
    yield case("a_s0 = 1 of accumulators", {"op": _LIN, "src_acc": 1, "a_s0": 1}, True)
    for by in (1, word // 2, word):
        yield case(f"p = {by}", {"op": _LIN, "p": by}, by == word)
        yield case(f"t = {by}", {"op": _LIN, "table": 1, "t": by}, by == word)
        yield case(f"t = {by}, without a table", {"op": _LIN, "t": by}, True)
        yield case(f"t = {by} of a wide one", {"op": _LOOKUP, "b_en": 1, "row": 1, "t": by}, by == word)
    groups = params.pes * params.cols // lanes
    for by in (0, 1):
        for flag in ("per_channel", "src_acc"):
            yield case(f"{flag} of {groups + by} groups", {"op": _LIN, flag: 1, "n0": groups + by}, not by)
    for tail in (lanes - 1, lanes, lanes + 1, 255):
        yield case(f"tail {tail}", {"op": _SUM, "across": 1, "tail": tail}, tail <= lanes)


def _flags(params: SocParams) -> Iterator[EdgeCase]:
    for op, (base, legal) in _TOGGLES.items():
        for change in _CHANGES:
            fields = {"op": op, **base}
            for part in change.split():
                name, _, value = part.partition("=")
                fields[name] = int(value) if value else 1
            changed = any(fields[name] != base.get(name) for name in fields if name != "op")
            ending = WELL if change in legal or not changed else _ODD
            yield one("VEC fields", f"{_NAMES[op]} with {change}", raw_word(Op.VEC, fields), ending)
        for name in base:
            if name != "n2":
                fields = {"op": op, **base, name: 0}
                yield one("VEC fields", f"{_NAMES[op]} without {name}", raw_word(Op.VEC, fields), _ODD)
    for n2 in (1, 3, 5):
        yield one("VEC fields", f"RAW, n2 {n2}", raw_word(Op.VEC, {"op": _RAW, "src_acc": 1, "n2": n2}), _ODD)
