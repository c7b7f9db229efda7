"""Softmax and layer normalisation of rows in LV1 as VEC instructions: how the operations on rows go together."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hw.contract.isa import VEC_HEADER, WIDE_BYTES, Insn, Op, VecOp
from hw.contract.params import SocParams

BLOCKS, TABLE, DATA = 0, 1024, 2048  #: where parameters, the wide table and rows lie
_BLOCK = 192  #: bytes from one parameter block to the next


@dataclass(frozen=True)
class RowProgram:
    """``insns``, what ``memory`` must hold before them by address, and where the bytes of result rows lie then."""

    insns: list[Insn]
    memory: dict[int, bytes]
    output: int
    stride: int

    def result(self, lv1: npt.NDArray[np.uint8], rows: int, length: int) -> npt.NDArray[np.uint8]:
        """The (rows, length) bytes of the result."""
        return lv1[self.output : self.output + rows * self.stride].reshape(rows, self.stride)[:, :length]


def softmax(params: SocParams, scores: npt.NDArray[np.int8], scale: float) -> RowProgram:
    """Of (rows, length) ``scores`` with ``scale``, as uint8 of scale 1/256."""
    rows, length = scores.shape
    lanes = params.vec_lanes
    vectors = -(-length // lanes)
    stride, size = vectors * lanes, rows * vectors * lanes
    largest, sums, output = DATA + size, DATA + size + rows * lanes, DATA + size + 2 * rows * lanes
    places = 31 - length.bit_length()  # the sum of a row fits 32 bits
    table = np.rint(np.exp(-scale * np.arange(256)) * (1 << places)).astype("<i4")
    row = {"n1": rows, "a": DATA, "a_s1": stride, "a_signed": 1, "p": BLOCKS, "t": TABLE}
    window = {"across": 1, "k0": vectors, "a_k0": lanes, "tail": length % lanes, "d_s1": lanes}
    each = {"n0": vectors, "a_s0": lanes, "d_s1": stride, "d_s0": lanes}
    record = {"op": VecOp.LOOKUP, "b_en": 1, "row": 1, "b_s1": lanes}
    insns = [
        Insn(Op.VEC, row | window | {"op": VecOp.MAX, "d": largest}),
        Insn(Op.VEC, row | window | record | {"b": largest, "d": sums}),
        Insn(Op.VEC, row | each | record | {"b": sums, "d": output}),
    ]
    block = _block(params, np.zeros(lanes), np.ones(lanes), zp_a=-3, mb=8, hi=255)
    return RowProgram(insns, {BLOCKS: block, TABLE: table.tobytes(), DATA: _padded(scores, stride)}, output, stride)


def layer_norm(
    params: SocParams, x: npt.NDArray[np.uint8], gain: npt.NDArray, shift: npt.NDArray, scale: float, epsilon: float
) -> RowProgram:
    """``(x - mean) / sqrt(variance + epsilon) * gain + shift`` over rows of ``x``, (rows, length) with the scale 1 and
    whole vectors; ``gain`` and ``shift`` by column. The result is int8 of ``scale``. Its numbers have 16 places."""
    rows, length = x.shape
    lanes, groups = params.vec_lanes, params.vec_groups
    assert length % (lanes * groups) == 0
    size = x.size
    records, planes, output = DATA + size, DATA + size + rows * lanes, DATA + size + rows * lanes + WIDE_BYTES * size
    bias = np.full(lanes, round(length**2 * epsilon))
    memory = {
        BLOCKS: _block(params, bias, np.ones(lanes), ma=length, mb=16),
        BLOCKS + _BLOCK: _block(params, np.zeros(lanes), np.ones(lanes), ma=length),
        DATA: x.tobytes(),
    }
    row = {"n1": rows, "a": DATA, "a_s1": length, "p": BLOCKS}
    window = {"across": 1, "k0": length // lanes, "a_k0": lanes, "d": records, "d_s1": lanes}
    each = {"n2": WIDE_BYTES, "n0": length // lanes, "a_s0": lanes, "b_en": 1, "row": 1, "b": records, "b_s1": lanes}
    each |= {"planes": 1, "p": BLOCKS + _BLOCK, "d": planes, "d_s2": size, "d_s1": length, "d_s0": lanes}
    insns = [Insn(Op.VEC, row | window | {"op": VecOp.MOMENTS}), Insn(Op.VEC, row | each | {"op": VecOp.LIN})]
    for number in range(length // (lanes * groups)):
        first = number * lanes * groups
        block, columns = BLOCKS + (2 + number) * _BLOCK, slice(first, first + lanes * groups)
        biases = np.rint(shift[columns] / gain[columns] * (1 << 16))
        memory[block] = _block(params, biases, gain[columns] / scale / (1 << 16))
        wide = {"op": VecOp.WIDE, "k0": WIDE_BYTES, "a_signed": 1, "per_channel": 1}
        wide |= {"a": planes + (WIDE_BYTES - 1) * size + first, "a_k0": -size}  # the highest byte comes first
        wide |= {"n1": rows, "n0": groups, "a_s1": length, "a_s0": lanes, "p": block}
        insns.append(Insn(Op.VEC, wide | {"d": output + first, "d_s1": length, "d_s0": lanes}))
    return RowProgram(insns, memory, output, length)


def _block(params: SocParams, bias: npt.NDArray, scale: npt.NDArray, **header: int) -> bytes:
    values = {"lo": -128, "hi": 127} | header
    if values["hi"] > 127:
        values["lo"] = 0
    raw = b"".join(values.get(name, 0).to_bytes(size, "little", signed=True) for name, size, _ in VEC_HEADER)
    raw = raw.ljust(params.vec_header_bytes, b"\0")
    raw += b"".join(
        np.int32(b).astype("<i4").tobytes() + np.float32(s).astype("<f4").tobytes()
        for b, s in zip(bias, scale, strict=True)
    )
    assert len(raw) <= _BLOCK
    return raw


def _padded(scores: npt.NDArray[np.int8], stride: int) -> bytes:
    """Rows of ``stride`` bytes; what lies behind their ends must not count."""
    padded = np.full((len(scores), stride), 127, np.int8)
    padded[:, : scores.shape[1]] = scores
    return padded.tobytes()
