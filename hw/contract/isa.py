"""The instruction set is one table per format (``hw/contract/formats.py``), from which encoder, decoder, assembler, RTL
layouts and the reference page derive.

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

An instruction of a body may name parameters of its job, a number each, that are added to fields of it before it goes to
its unit (``hw/contract/slots.py``).

Byte addresses throughout, except where a table says "words" (``rows`` bytes) or "rows" (accumulator rows).
"""

import enum
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hw.contract.formats import CANCEL_FORMAT, COPY_FORMAT, END_FORMAT, MAC_FORMAT, VEC_FORMAT, Field, format_bits
from hw.contract.slots import Added, SlotError, read_slots, slots_of, sum_in, written_slots

_Result = TypeVar("_Result")

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
    """An LD0 writes one of these LV0 memories (W = ``lv1_word``)."""

    ACT = 0
    WGT = 1
    ACC = 2  #: accumulators: byte X of row X // (4*P*C), int32 little endian; to restore them
    INT4 = 3  #: WGT interleaved, two int4 in a byte: X gives bytes Y = X + X // W * W (bits 3:0) and Y + W (bits 7:4)


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


class _Layout:
    """Says where the fields of an operation lie. ``word`` is an instruction with all at their ``defaults``; ``places``:
    smallest and largest value, offset, mask and default of each field; ``limits``: offset, mask and legal values of
    those of which not every value is legal; ``bits``: of all fields together; ``slots``: where parameters are named,
    and ``slot_mask``, the bits of all slots."""

    def __init__(self, op: Op) -> None:
        self.word = self.bits = 0
        self.slots = slots_of(FORMATS[op])
        self.slot_mask = (1 << self.slots.end) - (1 << self.slots.first) if self.slots else 0
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
    """Holds one instruction: an opcode, the fields that differ from their defaults, and the parameters of its job that
    are ``added`` to fields."""

    op: Op
    fields: dict[str, int] = field(default_factory=dict)
    added: tuple[Added, ...] = ()

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
        word, places = layout.word, layout.places
        for name, given in self.fields.items():
            if name not in places:
                odd = ", ".join(sorted(self.fields.keys() - places.keys()))
                raise IsaError(f"{self.op.name} has no field {odd}")
            minimum, maximum, offset, mask, default = places[name]
            value = given if type(given) is int else int(given)
            if not minimum <= value <= maximum:
                raise IsaError(f"{self.op.name}.{name} must be {minimum} to {maximum}, not {value}")
            if changed := value & mask ^ default:
                word ^= changed << offset
        self._check_segments()
        if self.added:
            word |= self._slots(written_slots, layout.slots, self.added)
        return word.to_bytes(INSN_BYTES, "little")

    @classmethod
    def check(cls, raw: bytes, parameters: int) -> None:
        """Raise what :meth:`decode` raises, in a fraction of the time that it takes; also if the instruction names a
        parameter and jobs have not so many ``parameters``."""
        layout, word = _BY_OPCODE.get(raw[0] if raw else 0), int.from_bytes(raw, "little")
        if (
            layout is None
            or len(raw) != INSN_BYTES
            or word >> layout.bits
            or any(word >> offset & mask not in values for offset, mask, values in layout.limits)
        ):
            for name, number in cls.decode(raw).added:  # or it says what is wrong
                if number >= parameters:
                    raise IsaError(f"{name}+P{number}: there are {parameters} parameters")

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
        layout = _LAYOUTS[op]
        if word >> offset & ~(layout.slot_mask >> offset):
            raise IsaError(f"{op.name} has reserved bits set")
        insn = cls(op, values)
        insn._check_segments()
        if word & layout.slot_mask:
            insn = cls(op, values, insn._slots(read_slots, layout.slots, word))
        return insn

    def resolve(self, parameters: Sequence[int]) -> "Insn":
        """Return the instruction that the hardware executes in a job with these ``parameters`` (none: a job without the
        flag PARAMS); raises :class:`IsaError` where that is illegal."""
        if not self.added:
            return self
        if not parameters:
            raise IsaError(f"{self.op.name} names parameters ({', '.join(map(str, self.added))}), and its job has none")
        fields = dict(self.fields)
        known = {f.name: f for f in FORMATS[self.op]}
        for name, number in self.added:
            before = fields.get(name, known[name].default)
            fields[name] = self._slots(sum_in, known[name], before, parameters[number])
        return Insn(self.op, fields)

    def _slots(self, of: Callable[..., _Result], *arguments: object) -> _Result:
        try:
            return of(*arguments)
        except SlotError as error:
            raise IsaError(f"{self.op.name}: {error}") from None

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
        return " ".join([*words, *map(str, self.added)])


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
