"""Guests: hand-written models that read every byte of the chip that a program can read, fill it with a pattern of their
own, stand at cancellation points with any table of what is live, and read everything again.

Bytes of a pattern have the number of their tenant in the upper half, so that what a guest finds tells whose it was, and
anything in the lower half but 0, so that a byte that was lost or moved is seen.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from benchmarks.trust.guest_code import RUN, SEMAPHORES, GuestChain
from hw.contract.isa import Insn, Lv0Space, Lv0View, Op, Segment, VecOp
from hw.contract.params import SocParams
from hw.contract.spaces import Space
from hw.image import CancelPoint, Image, ImageMeta, JobInfo, LayerInfo, LiveRange, PortInfo, StepInfo, TensorInfo

_STORES = 12  #: between two points: work during which the engine may be asked to halt
_POINTS = 4
_UNIT = bytes(int(i % 5 == 0) for i in range(16))  #: four by four
Bytes = npt.NDArray[np.uint8]


class Style(Enum):
    """What a guest is there for. ``FULL``: its table says that all of LV1 and the accumulators is dirty. ``SPREAD``: or
    all of segment 7, which a prologue fills first. ``KEEPER``: segment 7 is weights that stay for the next inference,
    of which the table may say that they are copies of other bytes. ``ASTRAY``: its points are said to lie in another
    job, so that nobody can suspend it there."""

    PLAIN = auto()
    FULL = auto()
    SPREAD = auto()
    KEEPER = auto()
    ASTRAY = auto()


@dataclass(frozen=True)
class Found:
    """What a guest found: bytes by memory (``lv2``, ``lv1``, ``acc``, ``act``, ``wgt``)."""

    memories: dict[str, Bytes]

    def foreign(self, tenant: int) -> str:
        """Whose bytes it found that is not number ``tenant``, and where; empty if none."""
        for name, found in self.memories.items():
            strange = (found >> 4 != 0) & (found >> 4 != tenant)
            if strange.any():
                at = int(strange.argmax())
                return f"{int(strange.sum())} bytes of others in {name}, the first, {found[at]:#x}, at {at:#x}"
        return ""


class Guest:
    """A model of tenant number ``tenant`` (1 to 15), with LV2 ``windows`` (segment 6 and what of segment 7 is beside
    it) and a live table that follows from ``rng``."""

    def __init__(
        self, rng: random.Random, params: SocParams, tenant: int, windows: tuple[int, int], style: Style = Style.PLAIN
    ) -> None:
        self.params, self.tenant, self.windows, self.style = params, tenant, windows, style
        self._astray = style is Style.ASTRAY
        self._low = windows[0] if style is Style.KEEPER else 0  #: where in segment 7 its window begins
        noise = np.frombuffer(rng.randbytes(max(RUN, *windows)), np.uint8)
        self.pattern: Bytes = (noise % 15 + 1 | tenant << 4).astype(np.uint8)
        self._acc = 4 * params.out_channels * params.lv0_acc_rows
        self._act, self._wgt = params.pes * params.lv0_act_bytes, params.pes * params.lv0_wgt_bytes
        self._look_bytes = sum(windows) + params.lv1_bytes + self._acc + 4 * (self._act + self._wgt)
        self._points: list[CancelPoint] = []
        self._chain = GuestChain()
        self._code(rng)

    # -- what it is ------------------------------------------------------------------------------------------
    def image(self) -> Image:
        """The image to load."""
        code = b"".join(insn.encode() for insn in self._chain.insns)
        sizes = [len(code), self.pattern.size, 64, 64, 2 * self._look_bytes, 4096, self.windows[0]]
        sizes.append(self._low + self.windows[1])
        tensors = [TensorInfo(name, "int8", [64], segment, 0) for name, segment in (("x", 2), ("y", 3))]
        jobs = [JobInfo(0, 0, self._body, 0 if self._body else None, window=(self._low, self.windows[1]))]
        if self._astray:
            jobs.append(JobInfo(0, 0, len(self._chain.insns) - 1))  # of an END alone
        meta = ImageMeta(
            model=f"guest of {self.tenant}", params=self.params.to_dict(), segment_sizes=sizes, tensors=tensors,
            inputs=[PortInfo("in", "int8", [64], "x", [0])], outputs=[PortInfo("out", "int8", [64], "y", [0])],
            layers=[LayerInfo("all", "guest", [], "y")],
            jobs=jobs, steps=[StepInfo("jobs", 0, len(jobs))], cancel_points=self._points, overlaid=bool(self._low),
            weights_only=(self._low, self.windows[1]) if self._low else (0, 0),
        )  # fmt: skip
        return Image(meta, code, self.pattern.tobytes())

    @property
    def inputs(self) -> npt.NDArray[np.int8]:
        """Units for the MAC, by which LV0 is read."""
        return np.frombuffer(_UNIT.ljust(64, b"\0"), np.int8)

    # -- its program -----------------------------------------------------------------------------------------
    def _code(self, rng: random.Random) -> None:
        chain = self._chain
        always = self.style in (Style.SPREAD, Style.KEEPER)
        if self.windows[1] and (always or rng.random() < 0.7):
            chain.copy(Op.LD2, 0, self._low, self.windows[1], src_seg=1, dst_seg=7)
            chain.insns = [Insn(insn.op, insn.fields | {"wait": 0, "signal": 0}) for insn in chain.insns]
            chain.insns.append(Insn(Op.END))
            chain.number = 0
        self._body = len(chain.insns)
        self._look(0)
        loads = self._fill()
        live, reload = self._table(rng, loads)
        for number in range(_POINTS):
            self._points.append(
                CancelPoint(number, int(self._astray), len(chain.insns), live=live, reload=reload,
                            semaphores=[(chain.number % SEMAPHORES, 1)])
            )  # fmt: skip
            chain.insns.append(Insn(Op.CANCEL, {"point": number}))
            for _ in range(_STORES):  # of what may not be live, to where the second look will overwrite it
                chain.copy(Op.ST2, 0, self._look_bytes, 2048, src_seg=6, dst_seg=4)
        self._look(1)
        chain.copy(Op.LD2, 0, 0, 64, src_seg=2, dst_seg=6)
        chain.copy(Op.ST2, 0, 0, 64, src_seg=6, dst_seg=3)
        chain.end()

    def _fill(self) -> list[int]:
        """Write the pattern everywhere but on weights that stay; returns the PCs of the loads that fill LV1, and LV0
        but for accumulators."""
        chain, loads = self._chain, []
        chain.copy(Op.LD2, 0, 0, self.windows[0], src_seg=1, dst_seg=6)
        if not self._low:
            chain.copy(Op.LD2, 0, 0, self.windows[1], src_seg=1, dst_seg=7)
        for at in range(0, self.params.lv1_bytes, RUN):
            loads += chain.copy(Op.LD1, 0, at, RUN, src_seg=6)
        for space, size in ((Lv0Space.ACT, self._act), (Lv0Space.WGT, self._wgt)):
            loads += chain.copy(Op.LD0, 0, 0, size, space=int(space), view=int(Lv0View.INTERLEAVED))
        chain.copy(Op.LD0, 0, 0, self._acc, space=int(Lv0Space.ACC))
        return loads

    def _look(self, number: int) -> None:
        """Store everything that can be read to segment 4, each memory before it is needed to read the next."""
        chain, at = self._chain, number * self._look_bytes
        for segment, low, size in zip((6, 7), (0, self._low), self.windows, strict=True):
            chain.copy(Op.ST2, low, at, size, src_seg=segment, dst_seg=4)
            at += size
        for low in range(0, self.params.lv1_bytes, RUN):
            at = self._store(low, at, RUN)
        at = self._accumulators(at)
        chain.copy(Op.LD2, 0, 0, len(_UNIT), src_seg=2, dst_seg=6)
        chain.copy(Op.LD1, 0, 8192, len(_UNIT), src_seg=6)
        rows = self.params.lv0_acc_rows
        everywhere = {"view": int(Lv0View.MULTICAST), "pe_mask": (1 << self.params.pes) - 1}
        chain.copy(Op.LD0, 8192, 0, len(_UNIT), space=int(Lv0Space.WGT), **everywhere)
        for first in range(0, self.params.lv0_act_bytes // self.params.rows, rows):
            chain.add(Op.MAC, act=first, p0=rows, p0_s=1)
            at = self._accumulators(at)
        chain.copy(Op.LD0, 8192, 0, len(_UNIT), space=int(Lv0Space.ACT), **everywhere)
        for first in range(0, self.params.lv0_wgt_bytes // self.params.rows, rows):
            for word in range(0, rows, self.params.rows):
                chain.add(Op.MAC, p0=self.params.rows, p0_s=1, wgt=first + word, acc=word)
            at = self._accumulators(at)

    def _accumulators(self, at: int) -> int:
        p = self.params
        row = 4 * p.out_channels
        self._chain.add(
            Op.VEC, op=int(VecOp.RAW), src_acc=1, a_s1=1, n2=4, n1=p.lv0_acc_rows, n0=p.vec_groups,
            d_s2=p.vec_lanes, d_s1=row, d_s0=4 * p.vec_lanes,
        )  # fmt: skip
        return self._store(0, at, self._acc)

    def _store(self, low: int, at: int, size: int) -> int:
        """LV1 from ``low`` on to byte ``at`` of segment 4, by way of LV2."""
        self._chain.copy(Op.ST1, low, 0, size, dst_seg=6)
        self._chain.copy(Op.ST2, 0, at, size, src_seg=6, dst_seg=4)
        return at + size

    # -- what is live ----------------------------------------------------------------------------------------
    def _table(self, rng: random.Random, loads: list[int]) -> tuple[list[LiveRange], list[int]]:
        lv1, acc = self.params.lv1_bytes, self._acc
        if self.style is Style.FULL:
            return [LiveRange(Space.LV1, 0, 0, lv1, True), LiveRange(Space.LV0_ACC, 0, 0, acc, True)], []
        live = [LiveRange(Space.LV1, 0, *piece, True) for piece in _pieces(rng, lv1, lv1 // 5)]
        live += [LiveRange(Space.LV0_ACC, 0, *piece, True) for piece in _pieces(rng, acc, acc // 3)]
        for segment, low, size in zip((6, 7), (0, self._low), self.windows, strict=True):
            whole = self.style is Style.SPREAD and segment == Segment.WINDOWS
            for offset, length in [(0, size)] if whole else _pieces(rng, size, size // 3):
                dirty = whole or rng.random() < (0.3 if low else 0.6)
                other = int(low > 0 and rng.random() < 0.8)
                source = (0, 0) if dirty else (int(Segment.WEIGHTS), offset - other)
                live.append(LiveRange(Space.LV2, segment, low + offset, length, dirty, *source))
        if rng.random() < 0.5:
            return live, []
        first = LiveRange(Space.LV2, 6, 0, RUN, False, int(Segment.WEIGHTS), 0)  # from which all loads begin
        private = [
            LiveRange(Space.LV1, 0, 0, lv1, False),
            LiveRange(Space.LV0_ACT, 0, 0, self.params.lv0_act_bytes, False),
            LiveRange(Space.LV0_WGT, 0, 0, self.params.lv0_wgt_bytes, False),
        ]
        return [*live, first, *private], loads

    # -- what it found ---------------------------------------------------------------------------------------
    def found(self, scratch: bytes) -> tuple[Found, Found]:
        """The two looks of its last inference, from the bytes of segment 4."""
        first, second = np.frombuffer(scratch, np.uint8).reshape(2, self._look_bytes)
        return self._parts(first), self._parts(second)

    def _parts(self, look: Bytes) -> Found:
        sizes = {
            "lv2": sum(self.windows), "lv1": self.params.lv1_bytes, "acc": self._acc, "act": 4 * self._act,
            "wgt": 4 * self._wgt,
        }  # fmt: skip
        parts, at = {}, 0
        for name, size in sizes.items():
            parts[name] = look[at : at + size]
            at += size
        parts["act"], parts["wgt"] = parts["act"][::4], parts["wgt"][::4]  # numbers of four bytes
        return Found(parts)

    def missing(self, first: Found) -> str:
        """What its prologue has brought, or one before if that stays, and its first look did not find; empty if
        nothing."""
        size = self.windows[1] if self._body else 0
        differs = first.memories["lv2"][self.windows[0] :][:size] != self.pattern[:size]
        return f"{int(differs.sum())} bytes are not what its prologue brings" if differs.any() else ""

    def lost(self, second: Found) -> str:
        """Live bytes that its second look did not find as they were written; empty if there are none."""
        expected = self._written()
        for where, live in self._live_bytes():
            differs = second.memories[where][live] != expected[where][live]
            if differs.any():
                at = live.start + int(differs.argmax())
                found, wanted = second.memories[where][at], expected[where][at]
                count = int(differs.sum())
                return f"{count} live bytes of {where} differ, the first at {at:#x}: {found:#x}, not {wanted:#x}"
        return ""

    def _written(self) -> dict[str, Bytes]:
        lv2 = np.concatenate([self.pattern[:size] for size in self.windows])
        lv1 = np.tile(self.pattern[:RUN], self.params.lv1_bytes // RUN)
        return {"lv2": lv2, "lv1": lv1, "acc": lv1[: self._acc], "act": lv1[: self._act], "wgt": lv1[: self._wgt]}

    def _live_bytes(self) -> Iterator[tuple[str, slice]]:
        pes, names = self.params.pes, {Space.LV1: "lv1", Space.LV0_ACC: "acc"}
        for live in self._points[0].live:
            if live.space == Space.LV2:
                low = self._low if live.segment == Segment.WINDOWS else 0
                base = self.windows[0] - low if live.segment == Segment.WINDOWS else 0
                if live.dirty or live.source_offset == live.offset - low:
                    yield "lv2", slice(base + live.offset, base + live.offset + live.size)
            elif live.space == Space.LV0_ACT:
                yield "act", slice(0, pes * live.size)
            elif live.space == Space.LV0_WGT:
                yield "wgt", slice(pes * len(_UNIT), pes * live.size)  # the first are overwritten to read the others
            else:
                yield names[live.space], slice(live.offset, live.offset + live.size)


def _pieces(rng: random.Random, room: int, most: int) -> list[tuple[int, int]]:
    """A few ranges (first byte, size) of any alignment in ``room`` bytes, in order, that leave bytes between them."""
    pieces, at = [], 0
    for _ in range(rng.randrange(5)):
        at += rng.choice((rng.randrange(1, 70), rng.randrange(1, max(2, room // 3))))
        size = rng.randint(1, max(1, most))
        if at + size > room:
            break
        pieces.append((at, size))
        at += size
    return pieces
