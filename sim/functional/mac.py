"""Says what MAC instructions do to the accumulators: the definition of ``MAC_FORMAT`` in ``hw.contract.isa`` in
NumPy."""

from collections.abc import Callable
from math import prod

import numpy as np
import numpy.typing as npt

from hw.contract.isa import MacMode, Op
from hw.contract.job import Fault
from hw.contract.spaces import Space
from sim.functional.limits import CheckedMemories
from sim.functional.state import EngineMemories, Segments, Work, nothing
from sim.functional.strided import MOST, Box, pieces, strided, whole

#: Products of two operands of 9 bits that float32 adds without rounding: each is at most 255 * 255.
_EXACT_DEPTH = (1 << 24) // (255 * 255)
_PIXELS_MOST = MOST << 3  #: elements of activations that are multiplied together

Put = Callable[[npt.NDArray], None]


class MacArrays(CheckedMemories):
    """Computes on the MAC arrays of all engines, one instruction at a time."""

    def _mac(self, f: dict, segments: Segments, engine: EngineMemories, op: Op) -> Work:
        p, rows = self.params, self.params.rows
        if f["mode"] > MacMode.DEPTHWISE:
            raise self._fault(Fault.ILLEGAL, f["mode"], f"MAC mode {f['mode']}")
        taps = min(p.lv0_banks, rows) if f["mode"] == MacMode.DEPTHWISE else 1
        block_loops, pixel_loops = (f["n2"], f["n1"], f["n0"]), (f["p1"], f["p0"])
        block_strides, pixel_strides = (f["k2_s"], f["k1_s"], f["k0_s"]), (f["p1_s"], f["p0_s"])
        blocks = prod(block_loops)
        act = Box(f["act"], (*block_loops, taps, *pixel_loops), (*block_strides, 1, *pixel_strides))
        self._touch(Space.LV0_ACT, act, False, p.lv0_act_bytes // rows)
        self._touch(Space.LV0_WGT, Box(f["wgt"], (blocks * rows,), (1,)), False, p.lv0_wgt_bytes // rows)
        self._touch(Space.LV0_ACC, Box(f["acc"], pixel_loops, (f["acc_s"], 1)), True, p.lv0_acc_rows)
        if self._only_checks:
            return nothing
        steps = [stride * rows for stride in (*pixel_strides, *block_strides, 1)]
        x = strided(  # (pe, pixel loops, block loops, tap, byte)
            engine.act, f["act"] * rows, (p.pes, *pixel_loops, *block_loops, taps, rows),
            (p.lv0_act_bytes, *steps, 1), np.int8 if f["x_signed"] else np.uint8,
        )  # fmt: skip
        raw = engine.wgt[:, f["wgt"] * rows : (f["wgt"] + blocks * rows) * rows]
        w = (raw.view(np.int8) if f["w_signed"] else raw).reshape(p.pes, blocks, rows, rows)  # (pe, block, row, column)
        if f["w_cols"]:
            w = w.transpose(0, 1, 3, 2)
        each, exact = p.pes * blocks * taps * rows, np.float32 if blocks * taps * rows <= _EXACT_DEPTH else np.float64
        x_zero, w_zero = _zero_point(f["x_signed"], f["x_zp"]), _zero_point(f["w_signed"], f["w_zp"])
        total = _depthwise if f["mode"] == MacMode.DEPTHWISE else _dense
        if prod(pixel_loops) * each <= _PIXELS_MOST:
            put = _putting(f, 0, pixel_loops, rows, engine.acc, engine.acc)
            return lambda: put(total(_widen(x, x_zero, exact), _widen(w, w_zero, exact)))

        def work() -> None:
            wide, before = _widen(w, w_zero, exact), engine.acc.copy()
            for piece in pieces(pixel_loops, each, _PIXELS_MOST):
                i1, i0 = whole(piece, pixel_loops)
                first, loops = i1.start * f["acc_s"] + i0.start, (i1.stop - i1.start, i0.stop - i0.start)
                _putting(f, first, loops, rows, before, engine.acc)(total(_widen(x[:, i1, i0], x_zero, exact), wide))

        return work


def _dense(x: npt.NDArray, w: npt.NDArray) -> npt.NDArray:
    """Return the sums of products for the pixels of ``x`` (pe, pixel loops, block loops, tap, byte) with the weights
    ``w`` (pe, block, row, column), as (pe, pixel, channel)."""
    pes, blocks, rows, _ = w.shape
    return _whole(x.reshape(pes, -1, blocks * rows) @ w.reshape(pes, blocks * rows, rows))


def _depthwise(x: npt.NDArray, w: npt.NDArray) -> npt.NDArray:
    """Return the sums as :func:`_dense` does, where each byte has a channel of its own."""
    pes, blocks, rows, _ = w.shape
    taps = x.shape[-2]
    x = x.reshape(pes, -1, blocks, taps, rows)
    return _whole(np.einsum("pxbtc,pbtc->pxc", x, w[:, :, :taps, :], optimize=True))


def _whole(total: npt.NDArray) -> npt.NDArray:
    """Return exact sums as integers: int32 if they are float32, which holds no more digits, otherwise int64."""
    return total.astype(np.int32 if total.dtype == np.float32 else np.int64)


def _putting(f: dict, first: int, loops: tuple[int, int], channels: int, before: npt.NDArray, acc: npt.NDArray) -> Put:
    """Return a function that puts (pe, pixel, channel) numbers into the accumulators ``acc``, from row ``first`` of the
    instruction's on; where it adds, to what was there ``before``. Sums are exact; the accumulator wraps as int32
    does."""
    (height, length), width, adds = loops, acc.shape[1], f["accumulate"]
    shape, row = (width // channels, height, length, channels), f["acc"] + first
    if f["acc_s"] >= length or height == 1:
        steps = (channels, f["acc_s"] * width, width, 1)
        target, old = (strided(each, row * width, shape, steps) for each in (acc, before))

        def put(found: npt.NDArray) -> None:
            found = found.reshape(shape)
            target[...] = found + old if adds else found

        return put
    index = Box(row, loops, (f["acc_s"], 1)).indices().reshape(-1)

    def put_in_order(found: npt.NDArray) -> None:
        found = found.transpose(1, 0, 2).reshape(height * length, width)
        acc[index] = found + before[index] if adds else found  # rows that overlap: the last pixel counts

    return put_in_order


def _zero_point(signed: int, raw: int) -> int:
    return raw - 256 if signed and raw > 127 else raw


def _widen(raw: npt.NDArray, zero_point: int, exact: npt.DTypeLike) -> npt.NDArray:
    """Return numbers minus their zero point, as floats so that BLAS multiplies them."""
    data: npt.NDArray = raw.astype(exact, order="C")
    if zero_point:
        data -= zero_point
    return data
