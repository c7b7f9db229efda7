"""The instruction set is one table per format, from which encoder, decoder, assembler, RTL layouts and the reference
page derive.

An instruction is 512 bits, little endian, and *self-contained*: a macro operation of hundreds of cycles on a
whole tile. No unit keeps configuration between instructions. Instructions of one unit run in program order;
different units run side by side and synchronise only by counting semaphores: an instruction starts once every
semaphore named in ``wait`` is above zero (each is then decremented by one, all at once), and increments every
semaphore named in ``signal`` by one after its last write has landed.

Rules a program keeps (the compiler proves them, the hardware faults or never starts otherwise):

* every wait is satisfied by signals that stand *earlier in program order*, so that a program may be cut at any
  instruction and drained;
* all semaphores are zero again at END;
* a prologue holds only LD2 without semaphores, then END.

Byte addresses throughout, except where a table says "words" (``rows`` bytes) or "rows" (accumulator rows).
"""

import enum
from collections.abc import Container
from dataclasses import dataclass, field

INSN_BITS = 512
INSN_BYTES = INSN_BITS // 8


class Segment(enum.IntEnum):
    """Names the segments of a job, for which its descriptor has base and limit. All but the last two lie in DRAM."""

    CODE = 0
    WEIGHTS = 1  #: constants
    INPUTS = 2
    OUTPUTS = 3
    SCRATCH = 4  #: free for data that one inference leaves in DRAM for itself
    SHARED = 5  #: tensors that CPU steps read or write, spills and observed tensors
    LV2 = 6  #: tensors, and buffers of one layer
    WINDOWS = 7  #: weights that prologues bring


SEGMENTS = len(Segment)  #: segment table entries of a job
LV2_SEGMENTS = (Segment.LV2, Segment.WINDOWS)  #: segments that lie in LV2; all others lie in DRAM
DRAM_SEGMENTS = tuple(segment for segment in Segment if segment not in LV2_SEGMENTS)
STORE_SEGMENTS = tuple(segment for segment in DRAM_SEGMENTS if segment not in (Segment.CODE, Segment.WEIGHTS))


class IsaError(ValueError):
    """Says why an instruction cannot be encoded or decoded; names mnemonic, field, value and limit."""


class Op(enum.IntEnum):
    """Names the opcodes. The suffix of a copy names the level it loads or stores; 0 is illegal on purpose."""

    END = 0x01
    CANCEL = 0x02
    LD2 = 0x10
    ST2 = 0x11
    LD1 = 0x20
    ST1 = 0x21
    LD0 = 0x30
    MAC = 0x40
    VEC = 0x50


class Unit(enum.IntEnum):
    """Each engine has these in-order unit queues; END and CANCEL belong to the sequencer itself."""

    LD2 = 0  #: DRAM → LV2
    ST2 = 1  #: LV2 → DRAM
    LD1 = 2  #: LV2 → LV1
    ST1 = 3  #: LV1 → LV2
    LD0 = 4  #: LV1 → LV0
    MAC = 5
    VEC = 6


UNIT_OF = {
    Op.LD2: Unit.LD2, Op.ST2: Unit.ST2, Op.LD1: Unit.LD1, Op.ST1: Unit.ST1,
    Op.LD0: Unit.LD0, Op.MAC: Unit.MAC, Op.VEC: Unit.VEC,
}  # fmt: skip

#: Segments that the two ends of a copy may name. An end that is not listed has no segment, and its field is ignored.
#: Stores reach neither code nor weights: what a loader has checked stays as it is.
SOURCE_SEGMENTS = {Op.LD2: DRAM_SEGMENTS, Op.ST2: LV2_SEGMENTS, Op.LD1: LV2_SEGMENTS}
DESTINATION_SEGMENTS = {Op.LD2: LV2_SEGMENTS, Op.ST2: STORE_SEGMENTS, Op.ST1: LV2_SEGMENTS}


class Lv0Space(enum.IntEnum):
    """An LD0 writes one of these LV0 memories."""

    ACT = 0
    WGT = 1
    ACC = 2  #: accumulators: byte X of row X // (4*P*C), int32 little endian; to restore them


class Lv0View(enum.IntEnum):
    """An LD0 destination offset X maps to PEs in one of these ways (R = ``rows``, P = ``pes``)."""

    MULTICAST = 0  #: byte X of every PE selected by ``pe_mask``
    INTERLEAVED = 1  #: PE (X // R) % P, byte (X // (P*R)) * R + X % R


class MacMode(enum.IntEnum):
    """The rows of the array multiply one of these."""

    DENSE = 0  #: row r takes byte r (input channel r) of one activation word, in every column
    DEPTHWISE = 1  #: row r takes, in column c, byte c of the r-th of ``lv0_banks`` consecutive words


class VecOp(enum.IntEnum):
    """A vector lane computes one of these before requantisation (A, B are operands minus their zero points)."""

    LIN = 0  #: accumulator, or A*ma + B*mb from LV1
    MUL = 1  #: A * B
    MAX = 2  #: maximum of A over (k1, k0)
    SUM = 3  #: sum of A over (k1, k0)
    RAW = 4  #: the bytes of the accumulators, unchanged; to dump them
    LOOKUP = 5  #: entry (number of the row - A) & 0xff of the wide table at t; its sum over (k1, k0) with ``across``
    MOMENTS = 6  #: sums of A and of A * A over (k1, k0) and all lanes
    WIDE = 7  #: the number with the bytes of A over (k1, k0), most significant first


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
    Field("space", 2, "LD0: which LV0 memory (`Lv0Space`); ACC: `view` is ignored, all in whole LV1 words"),
    Field("view", 1, "LD0: how offsets map to PEs (`Lv0View`)"),
)

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
#   MOMENTS: number = sum A, factor = 2^mb / sqrt(ma * (sum A*A) - number^2 + bias of entry 0), as uint48
# Factors are those of `hw.contract.row_function`; bias (but for MOMENTS), scale, zp_y, lo, hi play no part.
# With `row` (LIN, which computes A*ma - number; LOOKUP needs it) B is a record, and its factor replaces scale.
# WIDE: s = 256 * (256 * A0 + A1) + A2 ... over the window; zp_a plays no part, and a_signed is for A0 alone.
# With `planes` (n2 = 3, no table, not across): vector i2 holds byte i2 of clamp(rint(float32(s + bias) * scale)) as
# int24; zp_y, lo, hi play no part. WIDE reads it back.
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
)

FORMATS = {
    Op.END: END_FORMAT, Op.CANCEL: CANCEL_FORMAT, Op.LD2: COPY_FORMAT, Op.ST2: COPY_FORMAT,
    Op.LD1: COPY_FORMAT, Op.ST1: COPY_FORMAT, Op.LD0: COPY_FORMAT, Op.MAC: MAC_FORMAT, Op.VEC: VEC_FORMAT,
}  # fmt: skip

#: Scalar header of a VEC parameter block in LV1, little endian (name, bytes, doc). The block is
#: ``params.vec_header_bytes`` long and followed by one 8-byte entry per channel: bias int32, scale float32.
#: Lanes keep A and B minus their zero points in 10 bits: a zero point outside its range gives wrong results.
VEC_HEADER = (
    ("zp_a", 2, "zero point of A, int16, -128 to 255: that of an 8-bit tensor"),
    ("zp_b", 2, "zero point of B, likewise"),
    ("ma", 4, "multiplier of A, |ma| < 2^22"),
    ("mb", 4, "multiplier of B, |mb| < 2^22; of records the power of two in the factor, -64 to 63"),
    ("zp_y", 2, "zero point of the result, int16"),
    ("lo", 2, "smallest result, int16"),
    ("hi", 2, "largest result, int16"),
)
VEC_CHANNEL_BYTES = 8
TABLE_BYTES = 256
WIDE_TABLE_BYTES = 1024  #: 256 entries of LOOKUP, int32
RECORD_BYTES = 8  #: of a row's record: number and factor
WIDE_BYTES = 3  #: of a number in planes


def format_bits(fields: tuple[Field, ...]) -> int:
    """Return how many bits a format uses; the rest of the instruction is reserved and must be zero."""
    return sum(f.width for f in fields)


class _Layout:
    """Says where the fields of an operation lie. ``word`` is an instruction with all at their ``defaults``; ``places``:
    smallest and largest value, offset, mask and default of each field; ``limits``: offset, mask and legal values of
    those of which not every value is legal; ``bits``: of all fields together."""

    def __init__(self, op: Op) -> None:
        self.word = self.bits = 0
        self.places: dict[str, tuple[int, int, int, int, int]] = {}
        self.defaults = {f.name: f.default for f in FORMATS[op] if f.name != "opcode"}
        self.limits: list[tuple[int, int, Container[int]]] = []
        segments = {"src_seg": SOURCE_SEGMENTS.get(op), "dst_seg": DESTINATION_SEGMENTS.get(op)}
        for f in FORMATS[op]:
            mask, offset = (1 << f.width) - 1, self.bits
            value = int(op) if f.name == "opcode" else f.default & mask
            self.word |= value << offset
            self.bits += f.width
            if f.name != "opcode":
                self.places[f.name] = f.minimum, f.maximum, offset, mask, value
            legal = segments.get(f.name) or (range(f.low, f.maximum + 1) if f.low is not None else None)
            if legal:
                self.limits.append((offset, mask, legal))


_LAYOUTS = {op: _Layout(op) for op in FORMATS}
_BY_OPCODE = {int(op): layout for op, layout in _LAYOUTS.items()}


@dataclass(frozen=True)
class Insn:
    """Holds one instruction: an opcode and the fields that differ from their defaults."""

    op: Op
    fields: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        """Return the value of a field, or its default if it was not given."""
        if name == "opcode":
            return int(self.op)
        defaults = _LAYOUTS[self.op].defaults
        if name not in defaults:
            raise IsaError(f"{self.op.name} has no field {name!r}")
        return self.fields.get(name, defaults[name])

    def encode(self) -> bytes:
        """Return 64 bytes; raises :class:`IsaError` on an unknown field, a wrong value, or a segment out of reach."""
        layout = _LAYOUTS[self.op]
        word = layout.word
        for name, given in self.fields.items():
            if name not in layout.places:
                odd = ", ".join(sorted(self.fields.keys() - layout.places.keys()))
                raise IsaError(f"{self.op.name} has no field {odd}")
            minimum, maximum, offset, mask, default = layout.places[name]
            value = int(given)
            if not minimum <= value <= maximum:
                raise IsaError(f"{self.op.name}.{name} must be {minimum} to {maximum}, not {value}")
            word ^= (value & mask ^ default) << offset
        self._check_segments()
        return word.to_bytes(INSN_BYTES, "little")

    @classmethod
    def check(cls, raw: bytes) -> None:
        """Raise what :meth:`decode` raises, in a fraction of the time that it takes."""
        layout, word = _BY_OPCODE.get(raw[0] if raw else 0), int.from_bytes(raw, "little")
        if (
            layout is None
            or len(raw) != INSN_BYTES
            or word >> layout.bits
            or any(word >> offset & mask not in values for offset, mask, values in layout.limits)
        ):
            cls.decode(raw)  # says what is wrong

    @classmethod
    def decode(cls, raw: bytes) -> "Insn":
        """Return the inverse of :meth:`encode`; raises :class:`IsaError` on anything the hardware calls illegal."""
        if len(raw) != INSN_BYTES:
            raise IsaError(f"an instruction has {INSN_BYTES} bytes, not {len(raw)}")
        word = int.from_bytes(raw, "little")
        try:
            op = Op(word & 0xFF)
        except ValueError:
            raise IsaError(f"illegal opcode 0x{word & 0xFF:02x}") from None
        values, offset = {}, 0
        for f in FORMATS[op]:
            value = (word >> offset) & ((1 << f.width) - 1)
            offset += f.width
            if f.name == "opcode":
                continue
            if f.signed and value >> (f.width - 1):
                value -= 1 << f.width
            if value < f.minimum:
                raise IsaError(f"{op.name}.{f.name} must be at least {f.minimum}, not {value}")
            if value != f.default:
                values[f.name] = value
        if word >> offset:
            raise IsaError(f"{op.name} has reserved bits set")
        insn = cls(op, values)
        insn._check_segments()
        return insn

    def _check_segments(self) -> None:
        for name, allowed in (("src_seg", SOURCE_SEGMENTS), ("dst_seg", DESTINATION_SEGMENTS)):
            if self.op in allowed and self.fields.get(name, 0) not in allowed[self.op]:
                known = ", ".join(str(int(segment)) for segment in allowed[self.op])
                raise IsaError(f"{self.op.name}.{name} must be one of {known}, not {self.fields.get(name, 0)}")

    def __str__(self) -> str:
        words = [self.op.name]
        for f in FORMATS[self.op]:
            if f.name in self.fields and self.fields[f.name] != f.default:
                words.append(f"{f.name}={_show(f, self.fields[f.name])}")
        return " ".join(words)


def field_place(op: Op, name: str) -> tuple[int, int]:
    """Return first bit and width of a field in the word of ``op``; raises KeyError if it has none of that name."""
    _, _, offset, mask, _ = _LAYOUTS[op].places[name]
    return offset, mask.bit_length()


def add_to_field(code: bytearray, at: int, name: str, amount: int) -> None:
    """Add ``amount`` to an unsigned field of the instruction that begins at byte ``at``; raises :class:`IsaError` if it
    cannot hold the sum."""
    layout = _BY_OPCODE[code[at]]
    _, maximum, offset, mask, _ = layout.places[name]
    word = int.from_bytes(code[at : at + INSN_BYTES], "little")
    if not 0 <= (word >> offset & mask) + amount <= maximum:
        raise IsaError(f"{Op(code[at]).name}.{name} must be 0 to {maximum}, not {(word >> offset & mask) + amount}")
    code[at : at + INSN_BYTES] = (word + (amount << offset)).to_bytes(INSN_BYTES, "little")


#: Fields whose values have names.
ENUMERATED = {("LD0", "space"): Lv0Space, ("LD0", "view"): Lv0View, ("MAC", "mode"): MacMode, ("VEC", "op"): VecOp}
#: Fields that are sets of bits: semaphores, PEs.
MASKS = ("wait", "signal", "pe_mask")


def _show(f: Field, value: int) -> str:
    if f.name in MASKS:
        return ",".join(str(bit) for bit in range(f.width) if value >> bit & 1)
    return hex(value) if f.width >= 24 and not f.signed else str(value)


for _op, _fields in FORMATS.items():
    assert format_bits(_fields) <= INSN_BITS, (_op, format_bits(_fields))
