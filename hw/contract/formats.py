"""Holds the formats of instructions, a table of fields for each; :mod:`hw.contract.isa` says which operation has
which."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """Describes one bit field. ``default`` is what the assembler assumes and the disassembler leaves out."""

    name: str
    width: int
    doc: str
    signed: bool = False
    default: int = 0
    low: int | None = None  #: smallest legal value when it is not what the width allows

    @property
    def minimum(self) -> int:
        """Return the smallest legal value."""
        if self.low is not None:
            return self.low
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """Return the largest legal value."""
        return (1 << (self.width - self.signed)) - 1


@dataclass(frozen=True)
class ParameterSlots:
    """Says where the instructions of a format may name parameters of their job, and to which fields those are added.

    A slot is one of the ``fields``, counted from 1 (0: the slot is not in use, and zero), and above it the number of
    the parameter; slots follow one another from bit ``first`` on, and are added in that order.
    """

    first: int
    count: int
    fields: tuple[str, ...]

    @property
    def selector_bits(self) -> int:
        """Return the bits of a slot that name a field."""
        return len(self.fields).bit_length()

    @property
    def slot_bits(self) -> int:
        """Return the bits of a slot."""
        return self.selector_bits + PARAMETER_BITS

    @property
    def end(self) -> int:
        """Return the first bit behind the slots."""
        return self.first + self.count * self.slot_bits


PARAMETER_BITS = 3
PARAMETERS = 1 << PARAMETER_BITS  #: numbers that a job's descriptor can carry for its instructions


def _count(name: str, width: int, doc: str) -> Field:
    return Field(name, width, doc, default=1, low=1)


HEADER = (
    Field("opcode", 8, "operation (`Op`)"),
    Field("wait", 32, "mask of semaphores that must be above zero; each is decremented by one"),
    Field("signal", 32, "mask of semaphores incremented by one when the instruction has completed"),
)

END_FORMAT = (Field("opcode", 8, "END: all queues drain, then the job (or prologue) is over"),)

CANCEL_FORMAT = (
    Field("opcode", 8, "CANCEL: a point where the job may be stopped"),
    Field("point", 16, "number of the cancellation point in the image's table"),
)

# for i2 < n2, i1 < n1, i0 < n0: one *run* of `len` bytes from src + i2*src_s2 + i1*src_s1 + i0*src_s0 to
# dst + i2*dst_s2 + i1*dst_s1 + i0*dst_s0. Byte j of a run is read if lo <= j < hi, lo1 <= i1 < hi1 and
# lo0 <= i0 < hi0, and is `fill` otherwise. Only bytes that are read are checked against the source segment.
# With space INT4 every byte of a run, read or `fill`, is two int4, which are written sign-extended: an LV1 word gives
# two words of WGT, one of low halves of bytes, one of high ones. All fields count packed bytes, `dst` and its limit
# too.
COPY_FORMAT = (
    *HEADER,
    Field("src_seg", 3, "segment of the source (LD2: 0 to 5, ST2 and LD1: 6 or 7; ignored by ST1 and LD0)"),
    Field("dst_seg", 3, "segment of the destination (ST2: 2 to 5, LD2 and ST1: 6 or 7; ignored by LD1 and LD0)"),
    Field("src", 32, "byte offset of run byte 0; modulo 2^32, so it may lie before the segment under padding"),
    Field("dst", 32, "byte offset of the first run (LD0: byte of the `view`)"),
    _count("len", 16, "bytes written per run"),
    Field("lo", 16, "first byte of a run that is read"),
    Field("hi", 16, "end of the bytes of a run that are read"),
    _count("n2", 16, "runs, outermost loop"),
    _count("n1", 16, "runs, middle loop"),
    _count("n0", 16, "runs, innermost loop"),
    Field("src_s2", 28, "source stride of i2, bytes", signed=True),
    Field("src_s1", 28, "source stride of i1, bytes", signed=True),
    Field("src_s0", 28, "source stride of i0, bytes", signed=True),
    Field("dst_s2", 28, "destination stride of i2, bytes", signed=True),
    Field("dst_s1", 28, "destination stride of i1, bytes", signed=True),
    Field("dst_s0", 28, "destination stride of i0, bytes", signed=True),
    Field("lo1", 16, "first i1 that is read"),
    Field("hi1", 16, "end of i1 that is read"),
    Field("lo0", 16, "first i0 that is read"),
    Field("hi0", 16, "end of i0 that is read"),
    Field("fill", 8, "byte written where nothing is read (padding; the zero point of the tensor)"),
    Field("pe_mask", 16, "LD0 multicast: PEs that are written"),
    Field("space", 2, "LD0: which LV0 memory (`Lv0Space`); ACC and INT4 ignore `view`; ACC: all in whole LV1 words"),
    Field("view", 1, "LD0: how offsets map to PEs (`Lv0View`)"),
)

COPY_SLOTS = ParameterSlots(497, 2, ("src", "dst", "len", "hi", "n0", "n1", "n2"))

# for i2 < n2, i1 < n1, i0 < n0 (weight blocks; block number b counts them), for y < p1, x < p0 (pixels):
#   X[r] = activation word act + i2*k2_s + i1*k1_s + i0*k0_s + y*p1_s + x*p0_s, see MacMode
#   acc[acc + y*acc_s + x][c] (+)= sum over r of (X[r] - x_zp) * (W[b][r][c] - w_zp)
# with W[b] the `rows` words from wgt + b*rows (word r is row r, or column r with w_cols). The first block
# overwrites the accumulator unless `accumulate`. All PEs of the engine run in lockstep on their own LV0.
MAC_FORMAT = (
    *HEADER,
    Field("mode", 2, "what the rows multiply (`MacMode`)"),
    Field("accumulate", 1, "the first block adds to what the accumulators hold"),
    Field("x_signed", 1, "activations are int8 rather than uint8"),
    Field("w_signed", 1, "weights are int8 rather than uint8"),
    Field("w_cols", 1, "a weight word is a column of the array rather than a row (transposed operand)"),
    Field("x_zp", 8, "zero point of the activations, raw byte"),
    Field("w_zp", 8, "zero point of the weights, raw byte"),
    Field("act", 16, "first activation word"),
    Field("wgt", 16, "first weight word"),
    Field("acc", 12, "first accumulator row; the upper half of the rows is bank 1"),
    _count("n2", 12, "weight blocks, outermost loop"),
    _count("n1", 12, "weight blocks, middle loop"),
    _count("n0", 12, "weight blocks, innermost loop"),
    Field("k2_s", 16, "activation stride of i2, words", signed=True),
    Field("k1_s", 16, "activation stride of i1, words", signed=True),
    Field("k0_s", 16, "activation stride of i0, words", signed=True),
    _count("p1", 12, "pixels, outer loop"),
    _count("p0", 12, "pixels, inner loop"),
    Field("p1_s", 16, "activation stride of y, words", signed=True),
    Field("p0_s", 16, "activation stride of x, words", signed=True),
    Field("acc_s", 12, "accumulator stride of y, rows"),
)

# for i2 < n2, i1 < n1, i0 < n0: one *vector* of `vec_lanes` bytes is written to d + i2*d_s2 + i1*d_s1 + i0*d_s0:
#   s = op over j1 < k1, j0 < k0 of A at a + i2*a_s2 + i1*a_s1 + i0*a_s0 + j1*a_k1 + j0*a_k0
#                              and B at b + i2*b_s2 + i1*b_s1 + i0*b_s0   (A = byte - zp_a, B = byte - zp_b)
#   with src_acc: s = accumulator row a + i2*a_s2 + i1*a_s1 (strides in rows) of lane group i0
#   y = clamp(rint(float32(s + bias) * scale) + zp_y, lo, hi)      round half to even at each step, float32
#     (scale may be negative)
#   with table: y = table[y & 0xff]
# bias and scale are those of channel i0*vec_lanes + lane with `per_channel`, of channel `lane` otherwise.
# RAW (src_acc, n2 = 4, no window, no other flag): vector i2 holds bytes i2*vec_lanes ... of the vec_lanes int32
# accumulators of group i0, little endian, so that d_s2 = vec_lanes gives whole numbers; p and t play no part.
#
# Rows: a *row* is the window (k1, k0) over all lanes. With `across` (MAX, SUM, LOOKUP, MOMENTS; n0 = 1) it becomes a
# *record*, one vector: an int32 number, a float32 factor, zeros. Of the last vector of a window `tail` lanes count (0:
# all).
#   MAX: number = max A, factor = 0              SUM: number = sum A, factor = 2^mb / number (as uint32)
#   LOOKUP: number = that of B, factor = 2^mb / sum of the entries (as uint32)
#   MOMENTS: number = sum A, or 0 with `plain`,
#            factor = 2^mb / sqrt(ma * (sum A*A) - number^2 + bias of entry 0), as uint48
# Factors are those of `hw.contract.row_function`; bias (but for MOMENTS), scale, zp_y, lo, hi play no part.
# With `row` (LIN, which computes A*ma - number; LOOKUP needs it) B is a record, and its factor replaces scale.
# WIDE: s = 256 * (256 * A0 + A1) + A2 ... over the window; zp_a plays no part, and a_signed is for A0 alone.
# With `planes` (n2 = 3, no table, not across): vector i2 holds byte i2 of clamp(rint(float32(s + bias) * scale)) as
# int24; zp_y, lo, hi play no part. WIDE reads it back.
# Reads may run ahead of writes: a vector may be written over what it, or one ahead of it, reads, but not over what one
# behind it reads.
# LV1 addresses of vectors are multiples of vec_lanes; p and t are multiples of the LV1 word. Records need vec_lanes
# of at least 8.
VEC_FORMAT = (
    *HEADER,
    Field("op", 3, "what a lane computes (`VecOp`)"),
    Field("src_acc", 1, "A is the accumulators (int32) rather than LV1; with LIN only"),
    Field("b_en", 1, "LIN adds B*mb; MUL needs it"),
    Field("a_signed", 1, "A is int8 rather than uint8"),
    Field("b_signed", 1, "B is int8 rather than uint8"),
    Field("table", 1, "pass the clamped result through the 256-byte table at t"),
    Field("per_channel", 1, "bias and scale per output channel"),
    Field("a", 24, "operand A: LV1 byte address, or accumulator row with src_acc"),
    Field("b", 24, "operand B: LV1 byte address"),
    Field("d", 24, "destination: LV1 byte address"),
    Field("p", 24, "parameter block: LV1 byte address"),
    Field("t", 24, "table (256 bytes; LOOKUP: 256 int32): LV1 byte address"),
    _count("n2", 12, "vectors, outermost loop"),
    _count("n1", 12, "vectors, middle loop"),
    _count("n0", 12, "vectors, innermost loop (channel groups)"),
    _count("k1", 8, "window, outer loop"),
    _count("k0", 8, "window, inner loop"),
    Field("a_s2", 20, "stride of A over i2", signed=True),
    Field("a_s1", 20, "stride of A over i1", signed=True),
    Field("a_s0", 20, "stride of A over i0", signed=True),
    Field("a_k1", 20, "stride of A over j1", signed=True),
    Field("a_k0", 20, "stride of A over j0", signed=True),
    Field("b_s2", 20, "stride of B over i2", signed=True),
    Field("b_s1", 20, "stride of B over i1", signed=True),
    Field("b_s0", 20, "stride of B over i0", signed=True),
    Field("d_s2", 20, "stride of the destination over i2", signed=True),
    Field("d_s1", 20, "stride of the destination over i1", signed=True),
    Field("d_s0", 20, "stride of the destination over i0", signed=True),
    Field("across", 1, "the result of a window is reduced over all lanes to a record"),
    Field("tail", 8, "lanes that count in the last vector of a window with across; 0: all"),
    Field("row", 1, "B is a record: its number is subtracted, its factor replaces scale"),
    Field("planes", 1, "the result is an int24 of which vector i2 holds byte i2"),
    Field("plain", 1, "MOMENTS: the sum of A plays no part"),
)

VEC_SLOTS = ParameterSlots(485, 3, ("a", "b", "d", "p", "n0", "n1", "n2", "k0", "k1", "tail"))


def format_bits(fields: tuple[Field, ...]) -> int:
    """Return how many bits a format uses; the rest of the instruction is reserved and must be zero."""
    return sum(f.width for f in fields)
