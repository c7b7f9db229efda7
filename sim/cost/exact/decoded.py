"""Decodes code to columns of numbers: what its instructions ask of their units, for thousands of them at once."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hw.contract.formats import Field
from hw.contract.isa import DESTINATION_SEGMENTS, FORMATS, INSN_BITS, INSN_BYTES, SOURCE_SEGMENTS, UNIT_OF, Insn, Op
from hw.contract.params import SocParams
from sim.cost.exact.copies import COPY_FIELDS, BusCopy, CopySteps, bus_copy, copy_steps, takes_long
from sim.cost.exact.pipelines import MAC_FIELDS, VEC_FIELDS, MacBlocks, VecSteps, looks_long, mac_blocks, vec_steps

Column = npt.NDArray[np.int64]
Work = CopySteps | BusCopy | MacBlocks | VecSteps

ILLEGAL = -1  #: in ``units``: not an instruction that the hardware executes
END, CANCEL = len(UNIT_OF), len(UNIT_OF) + 1  #: in ``units``, beside the numbers of ``Unit``
_PAGE = 4096  #: addresses in DRAM count modulo this: no burst crosses it, and the driver aligns segments to it
_LOOPS = {Op.MAC: ("n2", "n1", "n0", "p1", "p0"), Op.VEC: ("n2", "n1", "n0", "k1", "k0")}
#: The address that lies in LV2, and in LV1.
_IN_LV2 = {Op.LD2: "dst", Op.ST1: "dst", Op.LD1: "src"}
_IN_LV1 = {Op.LD1: "dst", Op.ST1: "src", Op.LD0: "src", Op.VEC: "d"}
_COPIES = (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0)


class DecodedCode:
    """Holds the instructions in ``code``, in order.

    ``units``: number of ``Unit``, :data:`END`, :data:`CANCEL` or :data:`ILLEGAL`. ``waits``, ``signals``: numbers of
    semaphores. ``work``: what the formulas of :mod:`sim.cost.exact` say, None for what no unit executes and for what
    takes so long to work out that :meth:`measure` does it when it is executed; for copies from or to DRAM, ``at`` is
    what offsets of bursts are added to, itself an offset in segment ``segment``; ``into`` and ``into_segment`` are
    where in LV2 what writes or reads there begins, rounded down to a word, and ``near`` is the word of LV1 where a copy
    from or to it begins, or the results of a VEC, whose
    parameters are at byte ``into``. ``amount``: bytes that a copy reads, operands that MAC or
    VEC accepts; ``extent``: the end of what a copy writes.
    """

    COLUMNS = (
        "units", "work", "waits", "signals", "at", "segment", "into", "into_segment", "near", "points", "amount",
        "extent",
    )  # fmt: skip

    def __init__(self, code: bytes, params: SocParams) -> None:
        self.params = params
        raw = np.frombuffer(code, np.uint8)[: len(code) // INSN_BYTES * INSN_BYTES].reshape(-1, INSN_BYTES)
        self._words = raw.view("<u8")
        self._ops = raw[:, 0].astype(np.int64)
        count = len(raw)
        units = np.full(count, ILLEGAL, np.int64)
        self.work: list[Any] = [None] * count
        self.waits: list[tuple[int, ...]] = [()] * count
        self.signals: list[tuple[int, ...]] = [()] * count
        self.at = [0] * count
        self.segment = [0] * count
        self.into = [0] * count
        self.into_segment = [0] * count
        self.near = [0] * count
        self.points = [0] * count
        self.amount = [0] * count
        self.extent = [0] * count
        for op in Op:
            rows = np.flatnonzero(self._ops == int(op))
            rows = rows[self._legal(op, rows)]
            if op in UNIT_OF:
                units[rows] = int(UNIT_OF[op])
                self._semaphores(op, rows)
                self._work(op, rows)
            else:
                units[rows] = END if op is Op.END else CANCEL
                if op is Op.CANCEL:
                    for row, point in zip(rows.tolist(), self.column(op, "point", rows).tolist(), strict=True):
                        self.points[row] = point
        self.units: list[int] = units.tolist()

    def __len__(self) -> int:
        return len(self.units)

    def insns(self, first: int, end: int) -> dict[int, Insn]:
        """Return the legal instructions from ``first`` to before ``end`` that units execute, with all their fields, by
        how far behind ``first`` they are."""
        found: dict[int, Insn] = {}
        units = np.array(self.units[first:end])
        for op, unit in UNIT_OF.items():
            rows = first + np.flatnonzero(units == int(unit))
            names = [f.name for f in FORMATS[op] if f.name != "opcode"]
            columns = [self.column(op, name, rows).tolist() for name in names]
            for place, values in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
                found[place - first] = Insn(op, dict(zip(names, values, strict=True)))
        return found

    def column(self, op: Op, name: str, rows: npt.NDArray[np.intp]) -> Column:
        """Return field ``name`` of the instructions at ``rows``, which have the format of ``op``."""
        low, field = _place(op, name)
        word, shift = divmod(low, 64)
        value = self._words[rows, word] >> np.uint64(shift)
        if shift + field.width > 64:
            value |= self._words[rows, word + 1] << np.uint64(64 - shift)
        value &= np.uint64((1 << field.width) - 1)
        result = value.astype(np.int64)
        if field.signed:
            result -= (result >> (field.width - 1)) << field.width
        return result

    def _legal(self, op: Op, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return which instructions at ``rows`` are legal, as ``hw.control.decode`` does: reserved bits are zero,
        counts are not, semaphores exist, segments may be named."""
        fields = FORMATS[op]
        legal = np.ones(len(rows), np.bool_)
        used = sum(f.width for f in fields)
        for word in range(INSN_BITS // 64):
            free = min(64, max(0, used - 64 * word))
            if free < 64:
                legal &= (self._words[rows, word] >> np.uint64(free)) == 0
        for f in fields:
            if f.name in ("wait", "signal"):
                legal &= self.column(op, f.name, rows) >> self.params.semaphores == 0
            elif f.low == 1:
                legal &= self.column(op, f.name, rows) > 0
        for name, allowed in (("src_seg", SOURCE_SEGMENTS), ("dst_seg", DESTINATION_SEGMENTS)):
            if op in allowed:
                legal &= np.isin(self.column(op, name, rows), [int(segment) for segment in allowed[op]])
        return legal

    def _semaphores(self, op: Op, rows: npt.NDArray[np.intp]) -> None:
        numbers = rows.tolist()
        for name, into in (("wait", self.waits), ("signal", self.signals)):
            masks = self.column(op, name, rows).tolist()
            known = {mask: _bits(mask) for mask in set(masks)}
            for row, semaphores in zip(numbers, map(known.__getitem__, masks), strict=True):
                into[row] = semaphores

    def _work(self, op: Op, rows: npt.NDArray[np.intp]) -> None:
        if not len(rows):
            return
        p = self.params
        if op in _IN_LV2:
            word, side = p.dram_word if op is Op.LD2 else p.lv1_word, _IN_LV2[op]
            into = (self.column(op, side, rows) & -word).tolist()
            for row, at, segment in zip(
                rows.tolist(), into, self.column(op, f"{side}_seg", rows).tolist(), strict=True
            ):
                self.into[row], self.into_segment[row] = at, segment
        if op is Op.VEC:
            for row, at in zip(rows.tolist(), self.column(op, "p", rows).tolist(), strict=True):
                self.into[row] = at
        if op in _IN_LV1:
            near = self.column(op, _IN_LV1[op], rows) // p.lv1_word
            for row, at in zip(rows.tolist(), near.tolist(), strict=True):
                self.near[row] = at
        if op in (Op.LD2, Op.ST2):
            self._bus(op, rows)
        if op in _COPIES:
            self._amounts(op, rows)
        else:
            accepted = np.ones(len(rows), np.int64)
            for name in _LOOPS[op]:
                accepted *= self.column(op, name, rows)
            for row, amount in zip(rows.tolist(), accepted.tolist(), strict=True):
                self.amount[row] = amount
        self._each(op, rows)

    def measure(self, place: int) -> Work:
        """Return what the formulas say of an instruction that units execute, also of one in whose place there is
        None."""
        op, rows = Op(int(self._ops[place])), np.array([place])
        formula = self._formula(op)
        return formula.work(*(int(self._field(op, name, rows, formula.modulo)[0]) for name in formula.fields))

    def _amounts(self, op: Op, rows: npt.NDArray[np.intp]) -> None:
        f = {name: self.column(op, name, rows) for name in COPY_FIELDS}
        read = f["n2"] * np.maximum(0, np.minimum(f["hi"], f["len"]) - f["lo"])
        extent = f["dst"] + f["len"]
        for k in range(3):
            extent += np.maximum(0, (f[f"n{k}"] - 1) * f[f"dst_s{k}"])
            if k < 2:
                read *= np.maximum(0, np.minimum(f[f"hi{k}"], f[f"n{k}"]) - f[f"lo{k}"])
        for row, amount, end in zip(rows.tolist(), read.tolist(), extent.tolist(), strict=True):
            self.amount[row], self.extent[row] = amount, end

    def _bus(self, op: Op, rows: npt.NDArray[np.intp]) -> None:
        side = "src" if op is Op.LD2 else "dst"
        addresses = self.column(op, side, rows)
        addresses -= (addresses >> 31) << 32
        for row, at, segment in zip(
            rows.tolist(), (addresses & -_PAGE).tolist(), self.column(op, f"{side}_seg", rows).tolist(), strict=True
        ):
            self.at[row], self.segment[row] = at, segment

    def _each(self, op: Op, rows: npt.NDArray[np.intp]) -> None:
        """Work out once every combination of the fields that occurs and does not take long."""
        formula = self._formula(op)
        columns = [self._field(op, name, rows, formula.modulo) for name in formula.fields]
        table = np.stack(columns, axis=1)
        # Rows as bytes: a number of its own for each field would cost more than the formulas.
        keys = table.view(f"V{8 * len(columns)}")[:, 0].tolist()
        known: dict[bytes, Work | None] = {}
        for key in dict.fromkeys(keys):
            values = np.frombuffer(key, np.int64).tolist()
            long = formula.long(dict(zip(formula.fields, values, strict=True)))
            known[key] = None if long else formula.kept(*values)
        of = self.work
        for row, work in zip(rows.tolist(), map(known.__getitem__, keys), strict=True):
            of[row] = work

    def _field(self, op: Op, name: str, rows: npt.NDArray[np.intp], modulo: Mapping[str, int]) -> Column:
        column = self.column(op, name, rows)
        return column % modulo[name] if name in modulo else column

    def _formula(self, op: Op) -> "_Formula":
        p = self.params
        word, bus_word, burst = p.lv1_word, p.dram_word, p.dram_word * p.axi_burst_beats
        if op is Op.MAC:
            return _Formula(MAC_FIELDS, {}, partial(mac_blocks, p), partial(mac_blocks, p), lambda f: False)
        if op is Op.VEC:
            row = word * p.lv1_banks
            return _Formula(VEC_FIELDS, {"a": row, "b": row}, partial(vec_steps, p), partial(vec_steps, p), looks_long)
        if op in (Op.LD2, Op.ST2):
            far = {"src": bus_word, "dst": bus_word} | {"src" if op is Op.LD2 else "dst": _PAGE}
            kept, work = (partial(each, bus_word, burst, op is Op.LD2) for each in (bus_copy, bus_copy.__wrapped__))
            return _Formula(COPY_FIELDS, far, kept, work, lambda f: takes_long(f, burst))
        near = {"src": word, "dst": word}
        return _Formula(COPY_FIELDS, near, partial(copy_steps, word), partial(copy_steps, word), takes_long)


class _Formula(NamedTuple):
    """Says how to work out a kind of instruction: ``work`` takes the ``fields``, some of which count ``modulo`` a
    number; ``kept`` does the same, and remembers. ``long`` tells whether an instruction is so long that its work is
    asked for when it is executed, and not remembered."""

    fields: Sequence[str]
    modulo: Mapping[str, int]
    kept: Callable[..., Work]
    work: Callable[..., Work]
    long: Callable[[Mapping[str, int]], bool]


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(number for number in range(mask.bit_length()) if mask >> number & 1)


@lru_cache(maxsize=1 << 10)
def _place(op: Op, name: str) -> tuple[int, Field]:
    low = 0
    for f in FORMATS[op]:
        if f.name == name:
            return low, f
        low += f.width
    raise KeyError(name)
