"""Says what VEC instructions read and write: the definition of ``VEC_FORMAT`` in ``hw.contract.isa``. What they compute
from it is in :mod:`sim.functional.vector_results`."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from hw.contract.isa import RECORD_BYTES, TABLE_BYTES, VEC_CHANNEL_BYTES, WIDE_BYTES, WIDE_TABLE_BYTES, Op, VecOp
from hw.contract.job import Fault
from hw.contract.spaces import Space
from sim.functional.checked import CheckedMemories
from sim.functional.pieces import MOST, pieces, whole
from sim.functional.state import EngineMemories, Segments, Work, nothing
from sim.functional.strided import Box, strided
from sim.functional.vector_results import CHANNEL, Vectors, write_results

_A_STRIDES = ("a_s2", "a_s1", "a_s0", "a_k1", "a_k0")
_B_STRIDES = ("b_s2", "b_s1", "b_s0")
_D_STRIDES = ("d_s2", "d_s1", "d_s0")
_ACROSS = (VecOp.MAX, VecOp.SUM, VecOp.LOOKUP, VecOp.MOMENTS)
_WINDOWS = (VecOp.MAX, VecOp.SUM, VecOp.MOMENTS, VecOp.WIDE)  #: and LOOKUP with ``across``


class VectorUnit(CheckedMemories):
    """Runs the vector units of all engines, one instruction at a time."""

    def _vec(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> Work:
        why = self._illegal(f)
        if why:
            raise self._fault(Fault.ILLEGAL, f["op"], f"VEC {VecOp(f['op']).name}: {why}")
        self._check_alignment(f | ({"p": 0} if f["op"] == VecOp.RAW else {}))
        for name, (space, box) in self._boxes(f).items():
            self._touch(space, box, name == "d", engine.lv1.size if space is Space.LV1 else self.params.lv0_acc_rows)
        if self._only_checks:
            return nothing
        steps = prod(f[name] for name in ("n2", "n1", "n0", "k1", "k0"))
        if steps * self.params.vec_lanes <= MOST:
            return partial(write_results, f, self._vectors(f, engine, engine.lv1))

        def work() -> None:
            read = replace(engine, lv1=engine.lv1.copy())  # all is read before anything is written
            for part in _parts(f, self.params.vec_lanes):
                write_results(part, self._vectors(part, read, engine.lv1))

        return work

    def _boxes(self, f: dict) -> dict[str, tuple[Space, Box]]:
        """Return what an instruction reads and, as ``d``, writes, in the order in which it is checked."""
        shape, lanes, boxes = (f["n2"], f["n1"], f["n0"]), self.params.vec_lanes, dict[str, tuple[Space, Box]]()
        if f["op"] != VecOp.RAW:
            groups, header = f["n0"] if f["per_channel"] else 1, self.params.vec_header_bytes
            boxes["header"] = Space.LV1, Box(f["p"], (header,), (1,))
            boxes["channels"] = Space.LV1, Box(f["p"] + header, (groups * lanes * VEC_CHANNEL_BYTES,), (1,))
            if f["b_en"]:
                boxes["b"] = Space.LV1, Box(f["b"], (*shape, lanes), (*(f[n] for n in _B_STRIDES), 1))
        if f["src_acc"]:
            boxes["a"] = Space.LV0_ACC, Box(f["a"], shape[:2], (f["a_s2"], f["a_s1"]))
        else:
            windows = (*shape, f["k1"], f["k0"], lanes)
            boxes["a"] = Space.LV1, Box(f["a"], windows, (*(f[n] for n in _A_STRIDES), 1))
        if f["op"] == VecOp.LOOKUP:
            boxes["wide"] = Space.LV1, Box(f["t"], (WIDE_TABLE_BYTES,), (1,))
        if f["table"]:
            boxes["table"] = Space.LV1, Box(f["t"], (TABLE_BYTES,), (1,))
        boxes["d"] = Space.LV1, Box(f["d"], (*shape, lanes), (*(f[n] for n in _D_STRIDES), 1))
        return boxes

    def _vectors(self, f: dict, engine: EngineMemories, into: npt.NDArray[np.uint8]) -> Vectors:
        """Return views of what an instruction reads, and of what it writes in ``into``, by the names of
        :meth:`_boxes`."""
        found = {}
        for name, (space, box) in self._boxes(f).items():
            if space is Space.LV1:
                found[name] = box.view(into if name == "d" else engine.lv1)
                if name == "channels":
                    found[name] = found[name].view(CHANNEL).reshape(-1, self.params.vec_lanes)
            else:
                width, lanes = engine.acc.shape[1], self.params.vec_lanes
                strides = (*(stride * width for stride in box.strides), lanes, 1)
                found[name] = strided(engine.acc, box.offset * width, (*box.shape, f["n0"], lanes), strides)
        return found

    def _illegal(self, f: dict) -> str:
        """Return why the fields of an instruction do not fit together, or nothing if they do, by the rules of
        ``hw/vec/unit.py``."""
        p, op = self.params, f["op"]
        window, acc, across = f["k1"] * f["k0"] != 1, f["src_acc"], f["across"]
        if op == VecOp.RAW:
            names = ("b_en", "a_signed", "b_signed", "table", "per_channel", "across", "tail", "row", "planes")
            if not acc or f["n2"] != 4 or window or any(f[name] for name in names) or f["n0"] > p.vec_groups:
                return "takes src_acc, n2 = 4, no window and no other flag"
            return ""
        if acc and (op != VecOp.LIN or f["b_en"]):
            return "accumulators with another operation or operand"
        if f["b_en"] != (op in (VecOp.MUL, VecOp.LOOKUP)) and op != VecOp.LIN:
            return "an operand B too many or missing"
        if window and not (op in _WINDOWS or (op == VecOp.LOOKUP and across)):
            return "a window"
        if (f["per_channel"] or acc) and f["n0"] > p.vec_groups:
            return "more channels than an engine computes"
        if op == VecOp.MOMENTS and not across:
            return "needs across"
        if across and (op not in _ACROSS or f["n0"] != 1 or f["per_channel"] or f["table"] or f["planes"]):
            return "across with another operation, n0 or flag"
        if f["tail"] > (p.vec_lanes if across else 0):
            return "tail without across or beyond the lanes"
        if f["row"] != (op == VecOp.LOOKUP) and not (op == VecOp.LIN and f["b_en"]):
            return "row without a record, or none where one is needed"
        if (f["row"] or across) and p.vec_lanes < RECORD_BYTES:
            return f"a record takes {RECORD_BYTES} lanes"
        if op == VecOp.LOOKUP and f["table"]:
            return "has a table of its own"
        if f["planes"] and (f["n2"] != WIDE_BYTES or f["table"]):
            return f"planes take n2 = {WIDE_BYTES} and no table"
        return ""

    def _check_alignment(self, f: dict) -> None:
        lanes, word = self.params.vec_lanes, self.params.lv1_word
        vectors = ["d", *_D_STRIDES]
        if not f["src_acc"]:
            vectors += ["a", *_A_STRIDES]
        if f["b_en"]:
            vectors += ["b", *_B_STRIDES]
        tables = ["t"] if f["table"] or f["op"] == VecOp.LOOKUP else []
        for names, unit in ((vectors, lanes), (["p", *tables], word)):
            for name in names:
                if f[name] % unit:
                    raise self._fault(Fault.ILLEGAL, f[name], f"VEC.{name} is not a multiple of {unit}")


def _parts(f: dict, lanes: int) -> Iterator[dict]:
    """Yield the fields of instructions that do pieces of the one with the fields ``f``, one after the other. Planes
    stay together, and so do channels where they are told apart."""
    together = ("2" if f["planes"] or f["op"] == VecOp.RAW else "") + ("0" if f["per_channel"] or f["src_acc"] else "")
    loops = [k for k in "210" if k not in together]
    turn = prod(f[name] for name in ("k1", "k0", *(f"n{k}" for k in together))) * lanes
    counts = [f[f"n{k}"] for k in loops]
    for piece in pieces(counts, turn):
        part = dict(f)
        for k, here in zip(loops, whole(piece, counts), strict=True):
            part[f"n{k}"] = here.stop - here.start
            for operand in "abd":
                part[operand] += here.start * f[f"{operand}_s{k}"]
        yield part
