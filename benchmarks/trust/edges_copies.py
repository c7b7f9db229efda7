"""Edges of copies: which segments they may name, and every bound of source and destination, one byte to either side."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.trust.edges_case import END, WELL, WRAP, EdgeCase, executor, one, unit
from benchmarks.trust.words import raw_word
from hw.contract.isa import Op
from hw.contract.job import Fault
from hw.contract.params import SocParams

#: Segments that the ends of a copy may name; nothing here means that the field does not count.
_SOURCES = {Op.LD2: (0, 1, 2, 3, 4, 5), Op.ST2: (6, 7), Op.LD1: (6, 7)}
_DESTINATIONS = {Op.LD2: (6, 7), Op.ST2: (2, 3, 4, 5), Op.ST1: (6, 7)}
_LOOPS = ("0", "1", "2")
_ALL = {"hi1": 0xFFFF, "hi0": 0xFFFF, "hi": 0xFFFF}


def copies(params: SocParams, sizes: list[int]) -> Iterator[EdgeCase]:
    """``sizes``: of the segments of the job."""
    yield from _segments()
    for op in (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0):
        for side in _sides(op, params, sizes):
            yield from side.bounds()
    yield from _lv0(params)
    yield from _around(sizes)


def _segments() -> Iterator[EdgeCase]:
    for op in (Op.LD2, Op.ST2, Op.LD1, Op.ST1):
        for source in range(8):
            for destination in range(8):
                legal = source in _SOURCES.get(op, range(8)) and destination in _DESTINATIONS.get(op, range(8))
                word = raw_word(op, {"src_seg": source, "dst_seg": destination, "len": 8, **_ALL})
                what = f"{op.name} from {source} to {destination}"
                yield one("segments", what, word, WELL if legal else executor(Fault.ILLEGAL))


@dataclass(frozen=True)
class _Side:
    """One end of a copy, in a memory of ``size`` bytes. ``unit``: bytes of which all is a multiple."""

    op: Op
    end: str
    size: int
    fields: dict[str, int]
    what: str
    unit: int = 1

    def bounds(self) -> Iterator[EdgeCase]:
        u = self.unit
        for length in (u, 8, 19) if u == 1 else (u, 3 * u):
            yield from self._runs(length)
        if self.end == "src":
            yield from self._read()

    def _case(self, what: str, fields: dict[str, int], first: int | None = None) -> EdgeCase:
        """``first``: the first byte beyond the bound, or None."""
        word = raw_word(self.op, {**_ALL, **self.fields, **fields})
        ending = WELL if first is None else unit(self.op, Fault.LIMIT, first % WRAP)
        return one(f"{self.op.name} {self.end}", f"{self.what}: {what}", word, ending)

    def _runs(self, length: int) -> Iterator[EdgeCase]:
        end, u, size = self.end, self.unit, self.size
        for by in (-u, 0, u):
            start = size - length + by
            at = {"len": length, end: start}
            yield self._case(f"{length} bytes at the end {by:+}", at, max(start, size) if by > 0 else None)
        for start in dict.fromkeys((size, size + u, WRAP - length, WRAP - u)):
            if start % u == 0:
                yield self._case(f"{length} bytes at {start:#x}", {"len": length, end: start}, start)
        step = 2 * length if u > 1 else length + 5
        for loop in _LOOPS:
            for by in (-u, 0, u):
                last = size - length + by
                up = {"len": length, f"n{loop}": 3, end: (last - 2 * step) % WRAP, f"{end}_s{loop}": step}
                yield self._case(
                    f"{length} bytes up by n{loop} to the end {by:+}", up, max(last, size) if by > 0 else None
                )
                down = {"len": length, f"n{loop}": 3, end: 2 * step + by, f"{end}_s{loop}": -step}
                yield self._case(f"{length} bytes down by n{loop} to the start {by:+}", down, by if by < 0 else None)
        for by in (0, u):
            nest = {"len": length, "n2": 2, "n1": 2, "n0": 2, end: size - length - 6 * step + by}
            nest |= {f"{end}_s2": 3 * step, f"{end}_s1": 2 * step, f"{end}_s0": step}
            beyond = max(size - length + by, size)
            yield self._case(f"{length} bytes by all loops to the end {by:+}", nest, beyond if by else None)

    def _read(self) -> Iterator[EdgeCase]:
        """Only what is read counts."""
        size, u, length = self.size, self.unit, 24
        for by in (0, u):
            before = {"len": length, "src": -2 * u % WRAP, "lo": 2 * u - by}
            yield self._case(f"lo, start {-by:+}", before, -by if by else None)
            behind = {"len": length, "src": size - length + 2 * u, "hi": length - 2 * u + by}
            yield self._case(f"hi, end {by:+}", behind, size if by else None)
        for loop in ("0", "1"):
            for by in (0, 1):
                before = {"len": 8, f"n{loop}": 3, "src": -32 % WRAP, f"src_s{loop}": 32, f"lo{loop}": 1 - by}
                yield self._case(f"lo{loop}, {by} too early", before, -32 if by else None)
                behind = {"len": 8, f"n{loop}": 3, "src": size - 39, f"src_s{loop}": 32, f"hi{loop}": 1 + by}
                yield self._case(f"hi{loop}, {by} too late", behind, size if by else None)


def _sides(op: Op, params: SocParams, sizes: list[int]) -> Iterator[_Side]:
    legal = {"src_seg": _SOURCES.get(op, (0,))[0], "dst_seg": _DESTINATIONS.get(op, (0,))[0]}
    for end, kinds in (("src", _SOURCES), ("dst", _DESTINATIONS)):
        if op in kinds:
            for segment in kinds[op]:
                yield _Side(op, end, sizes[segment], {**legal, f"{end}_seg": segment}, f"segment {segment}")
        elif op is not Op.LD0 or end == "src":
            yield _Side(op, end, params.lv1_bytes, legal, "LV1")
    if op is Op.LD0:
        for space, name, size in ((0, "ACT", params.lv0_act_bytes), (1, "WGT", params.lv0_wgt_bytes)):
            for view in (0, 1):
                here = {"space": space, "view": view, "pe_mask": 1}
                yield _Side(op, "dst", size * (params.pes if view else 1), here, f"{name} view {view}")
        rows = 4 * params.pes * params.cols * params.lv0_acc_rows
        for view in (0, 1):
            here = {"space": 2, "view": view}
            yield _Side(op, "dst", rows, here, f"ACC view {view}", params.lv1_word)
            here = {"space": 3, "view": view}
            yield _Side(op, "dst", params.pes * params.lv0_wgt_bytes // 2, here, f"INT4 view {view}")


def _lv0(params: SocParams) -> Iterator[EdgeCase]:
    """PEs that are not there; accumulators take whole words only."""
    bad = unit(Op.LD0, Fault.ILLEGAL)
    for space in range(4):
        for bit in range(16):
            mask = {"space": space, "pe_mask": 1 << bit, "len": params.lv1_word, **_ALL}
            ending = WELL if bit < params.pes else bad
            yield one("LD0 fields", f"space {space}, PE {bit}", raw_word(Op.LD0, mask), ending)
    word = params.lv1_word
    whole = {"space": 2, "len": 2 * word, "n0": 2, "n1": 2, "n2": 2, **_ALL}
    names = ("src", "dst", "len", *(f"{side}_s{k}" for side in ("src", "dst") for k in range(3)))
    for name in names:
        for by in (0, 1, word // 2, word):
            fields = whole | {name: whole.get(name, 0) + by}
            yield one("LD0 fields", f"ACC {name} + {by}", raw_word(Op.LD0, fields), bad if by % word else WELL)
    for name, legal in (("lo", word), ("hi", word)):
        for by in (0, 1):
            fields = whole | {name: legal + by}
            yield one("LD0 fields", f"ACC {name} + {by}", raw_word(Op.LD0, fields), bad if by else WELL)


def _around(sizes: list[int]) -> Iterator[EdgeCase]:
    """A run around the end of the address space, in a segment of nearly all of it."""
    whole = WRAP - 1
    for op, end, segment in ((Op.LD2, "src", 2), (Op.ST2, "dst", 4)):
        legal = {"src_seg": _SOURCES[op][0], "dst_seg": _DESTINATIONS[op][0], **_ALL}
        for length in (2, 16):
            word = raw_word(op, {**legal, f"{end}_seg": segment, end: whole - 1, "len": length + 1})
            fields = {f"base{segment}": 0, f"limit{segment}": whole}
            what = f"{length + 1} bytes around the end of a segment of all"
            yield EdgeCase(f"{op.name} {end}", what, (word, END), unit(op, Fault.LIMIT, whole), (), fields)
