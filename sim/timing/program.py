"""A program as columns of numbers: what its instructions ask of their units, for thousands of them at once."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.contract.isa import (
    DESTINATION_SEGMENTS,
    FORMATS,
    INSN_BITS,
    INSN_BYTES,
    SOURCE_SEGMENTS,
    UNIT_OF,
    Field,
    Insn,
    Op,
)
from hw.contract.params import SocParams
from sim.timing.copies import COPY_FIELDS, BusCopy, CopySteps, bus_copy, copy_steps
from sim.timing.pipelines import MAC_FIELDS, VEC_FIELDS, MacBlocks, VecSteps, mac_blocks, vec_steps

Column = npt.NDArray[np.int64]
Work = CopySteps | BusCopy | MacBlocks | VecSteps

ILLEGAL = -1  #: in ``Program.units``: not an instruction that the hardware executes
END, CANCEL = len(UNIT_OF), len(UNIT_OF) + 1  #: in ``Program.units``, beside the numbers of ``Unit``
_PAGE = 4096  #: addresses in DRAM count modulo this: no burst crosses it, and the driver aligns segments to it
_CHUNK, _CHUNKS = 1024, 4  #: instructions that are decoded together, and how many such chunks are kept
_COPIES = (Op.LD2, Op.ST2, Op.LD1, Op.ST1, Op.LD0)


class ProgramTable:
    """The instructions in ``code``, by PC.

    ``units``: number of ``Unit``, :data:`END`, :data:`CANCEL` or :data:`ILLEGAL`. ``waits``, ``signals``: numbers of
    semaphores. ``work``: what the formulas of :mod:`sim.timing` say, None for what no unit executes; for copies from or
    to DRAM, ``at`` is what offsets of bursts are added to, itself an offset in segment ``segment``; ``into`` and
    ``into_segment`` are the destination of what writes to LV2, rounded down to a word. ``amount``: bytes
    that a copy reads, operands that MAC or VEC accepts; ``extent``: the end of what a copy writes.
    """

    def __init__(self, code: bytes, params: SocParams) -> None:
        self.params = params
        self._raw = np.frombuffer(code, np.uint8)[: len(code) // INSN_BYTES * INSN_BYTES].reshape(-1, INSN_BYTES)
        self._words = np.ascontiguousarray(self._raw).view("<u8")
        self._ops = self._raw[:, 0].astype(np.int64)
        self._insns: dict[int, dict[int, Insn]] = {}  # chunks that were decoded last
        count = len(self._raw)
        units = np.full(count, ILLEGAL, np.int64)
        self.work: list[Any] = [None] * count
        self.waits: list[tuple[int, ...]] = [()] * count
        self.signals: list[tuple[int, ...]] = [()] * count
        self.at = [0] * count
        self.segment = [0] * count
        self.into = [0] * count
        self.into_segment = [0] * count
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

    def raw(self, pc: int) -> bytes:
        """The instruction at ``pc`` as it lies in memory."""
        return self._raw[pc].tobytes()

    def insn(self, pc: int) -> Insn:
        """The instruction at ``pc``, which is legal, with all its fields."""
        chunk = pc // _CHUNK
        if chunk not in self._insns:
            if len(self._insns) == _CHUNKS:
                del self._insns[next(iter(self._insns))]
            self._insns[chunk] = self._decoded(chunk * _CHUNK)
        return self._insns[chunk][pc]

    def _decoded(self, first: int) -> dict[int, Insn]:
        """The legal instructions from ``first`` on that units execute."""
        found: dict[int, Insn] = {}
        for op, unit in UNIT_OF.items():
            rows = np.array(
                [pc for pc in range(first, min(first + _CHUNK, len(self))) if self.units[pc] == unit], np.intp
            )
            names = [f.name for f in FORMATS[op] if f.name != "opcode"]
            columns = [self.column(op, name, rows).tolist() for name in names]
            for pc, values in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
                found[pc] = Insn(op, dict(zip(names, values, strict=True)))
        return found

    def column(self, op: Op, name: str, rows: npt.NDArray[np.intp]) -> Column:
        """Field ``name`` of the instructions at ``rows``, which have the format of ``op``."""
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
        """As ``hw.control.decode``: reserved bits are zero, counts are not, semaphores exist, segments may be named."""
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
        if op in _COPIES:
            self._amounts(op, rows)
        if op in (Op.LD2, Op.ST1):
            word = p.dram_word if op is Op.LD2 else p.lv1_word
            into = (self.column(op, "dst", rows) & -word).tolist()
            for row, at, segment in zip(rows.tolist(), into, self.column(op, "dst_seg", rows).tolist(), strict=True):
                self.into[row], self.into_segment[row] = at, segment
        if op is Op.MAC:
            self._each(op, rows, MAC_FIELDS, lambda *values: mac_blocks(p, *values))
        elif op is Op.VEC:
            banks = p.lv1_word * p.lv1_banks
            self._each(op, rows, VEC_FIELDS, lambda *values: vec_steps(p, *values), {"a": banks, "b": banks})
        elif op in (Op.LD2, Op.ST2):
            self._bus(op, rows)
        else:
            word = p.lv1_word
            modulo = {"src": word, "dst": word}
            self._each(op, rows, COPY_FIELDS, lambda *values: copy_steps(word, *values), modulo)

        if op not in _COPIES:
            for row in rows.tolist():
                self.amount[row] = self.work[row].accepted

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
        word, burst = self.params.dram_word, self.params.dram_word * self.params.axi_burst_beats
        side = "src" if op is Op.LD2 else "dst"
        modulo = {"src": word, "dst": word} | {side: _PAGE}
        addresses = self.column(op, side, rows)
        addresses -= (addresses >> 31) << 32
        for row, at, segment in zip(
            rows.tolist(), (addresses & -_PAGE).tolist(), self.column(op, f"{side}_seg", rows).tolist(), strict=True
        ):
            self.at[row], self.segment[row] = at, segment
        self._each(op, rows, COPY_FIELDS, lambda *values: bus_copy(word, burst, op is Op.LD2, *values), modulo)

    def _each(
        self, op: Op, rows: npt.NDArray[np.intp], names: Sequence[str], formula: Callable[..., Work],
        modulo: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Apply ``formula`` once to every combination of the fields ``names`` that occurs."""
        columns = [self.column(op, name, rows) for name in names]
        for name, divisor in (modulo or {}).items():
            columns[names.index(name)] %= divisor
        table = np.stack(columns, axis=1)
        # Rows as bytes: a number of its own for each field would cost more than the formulas.
        keys = table.view(f"V{8 * len(names)}")[:, 0].tolist()
        known = {key: formula(*np.frombuffer(key, np.int64).tolist()) for key in dict.fromkeys(keys)}
        of = self.work
        for row, work in zip(rows.tolist(), map(known.__getitem__, keys), strict=True):
            of[row] = work


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
