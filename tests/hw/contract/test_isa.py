import contextlib
from functools import partial

import pytest
from amaranth.hdl import Const
from hypothesis import given, strategies as st

from hw.contract.assembly import assemble, disassemble
from hw.contract.formats import format_bits
from hw.contract.isa import (
    DESTINATION_SEGMENTS,
    FORMATS,
    INSN_BITS,
    INSN_BYTES,
    SOURCE_SEGMENTS,
    UNIT_OF,
    Insn,
    IsaError,
    Op,
    add_to_field,
)
from hw.interfaces import struct_layout
from tests.support.raw_insns import WRONG_SEGMENTS, legal, legal_copy, with_field


@st.composite
def insns(draw):
    op = draw(st.sampled_from(list(Op)))
    values = {}
    for f in FORMATS[op]:
        if f.name != "opcode" and draw(st.booleans()):
            value = draw(st.sampled_from([f.minimum, f.maximum]) | st.integers(f.minimum, f.maximum))
            if value != f.default:
                values[f.name] = value
    for name, allowed in (("src_seg", SOURCE_SEGMENTS), ("dst_seg", DESTINATION_SEGMENTS)):
        if op in allowed:
            values[name] = int(draw(st.sampled_from(allowed[op])))
            if not values[name]:
                del values[name]
    return Insn(op, values)


@given(insns())
def test_decode_inverts_encode(insn):
    assert Insn.decode(insn.encode()) == insn


@given(insns())
def test_assemble_inverts_disassemble(insn):
    assert assemble(str(insn)) == [insn]


@given(st.lists(insns(), max_size=5))
def test_whole_programs_survive_disassembly(program):
    code = b"".join(insn.encode() for insn in program)
    assert assemble(disassemble(code)) == program


@given(insns())
def test_rtl_layout_reads_the_same_fields(insn):
    raw = Const(int.from_bytes(insn.encode(), "little"), INSN_BITS).value
    layout = struct_layout(insn.op)
    constant = layout.from_bits(raw)
    for f in FORMATS[insn.op]:
        assert constant[f.name] == insn[f.name]
    assert constant["reserved"] == 0


@given(st.binary(min_size=INSN_BYTES, max_size=INSN_BYTES))
def test_any_bytes_decode_to_what_encodes_back_or_are_refused(raw):
    try:
        insn = Insn.decode(raw)
    except IsaError:
        return
    assert insn.encode() == raw


@given(insns(), st.integers(0, INSN_BITS - 1))
def test_a_flipped_bit_never_decodes_to_the_same_instruction(insn, bit):
    flipped = (int.from_bytes(insn.encode(), "little") ^ 1 << bit).to_bytes(INSN_BYTES, "little")
    with contextlib.suppress(IsaError):
        assert Insn.decode(flipped) != insn


def refusal(read, raw):
    """What ``read`` says against an instruction; None if it is legal."""
    try:
        read(raw)
    except IsaError as error:
        return str(error)
    return None


@given(insns(), st.integers(0, INSN_BITS - 1))
def test_a_check_refuses_what_decoding_refuses(insn, bit):
    raw = insn.encode()
    flipped = (int.from_bytes(raw, "little") ^ 1 << bit).to_bytes(INSN_BYTES, "little")
    assert Insn.check(raw, 8) is None
    assert refusal(partial(Insn.check, parameters=8), flipped) == refusal(Insn.decode, flipped)


@pytest.mark.parametrize("op", list(Op))
def test_a_check_refuses_every_value_out_of_range(op):
    """Each field at 0, at its smallest and at its largest bits: one that must not be so is refused by name."""
    for f in FORMATS[op][1:]:
        for bits in (0, 1, (1 << f.width) - 1):
            raw = with_field(legal(op), f.name, bits)
            assert refusal(partial(Insn.check, parameters=8), raw) == refusal(Insn.decode, raw)


@pytest.mark.parametrize("raw", [b"", bytes(63), bytes(64), bytes(65), bytes([0xFF]) + bytes(63)])
def test_a_check_refuses_what_is_no_instruction(raw):
    assert refusal(partial(Insn.check, parameters=8), raw) == refusal(Insn.decode, raw) is not None


@pytest.mark.parametrize("op", list(Op))
def test_every_field_refuses_values_out_of_range(op):
    for f in FORMATS[op]:
        if f.name == "opcode":
            continue
        for value in (f.minimum - 1, f.maximum + 1):
            with pytest.raises(IsaError, match=rf"{op.name}\.{f.name} must be {f.minimum} to {f.maximum}, not {value}"):
                Insn(op, {f.name: value}).encode()


@pytest.mark.parametrize("op", list(Op))
def test_formats_fit_and_names_are_unique(op):
    names = [f.name for f in FORMATS[op]]
    assert len(set(names)) == len(names)
    assert names[0] == "opcode" and format_bits(FORMATS[op]) <= INSN_BITS
    assert all(f.doc for f in FORMATS[op])
    assert all(f.minimum <= f.default <= f.maximum for f in FORMATS[op] if f.name != "opcode")


def test_each_operation_of_a_unit_has_semaphores():
    for op in UNIT_OF:
        assert [f.name for f in FORMATS[op][:3]] == ["opcode", "wait", "signal"]


@pytest.mark.parametrize("op", list(Op))
def test_reserved_bits_are_refused(op):
    raw = int.from_bytes(legal(op).encode(), "little") | 1 << INSN_BITS - 1
    if format_bits(FORMATS[op]) < INSN_BITS:
        with pytest.raises(IsaError, match="reserved bits"):
            Insn.decode(raw.to_bytes(INSN_BYTES, "little"))


@pytest.mark.parametrize(("op", "name", "number"), WRONG_SEGMENTS)
def test_segments_out_of_reach_are_refused(op, name, number):
    """Copies name memory of their own level only, and stores neither code nor weights."""
    said = rf"{op.name}\.{name} must be one of .*, not {number}"
    with pytest.raises(IsaError, match=said):
        legal_copy(op, **{name: number}).encode()
    with pytest.raises(IsaError, match=said):
        Insn.decode(with_field(legal_copy(op), name, number))


@pytest.mark.parametrize("opcode", [0x00, 0xFF, 0x03])
def test_unknown_opcodes_are_refused(opcode):
    with pytest.raises(IsaError, match=f"illegal opcode 0x{opcode:02x}"):
        Insn.decode(bytes([opcode]) + bytes(INSN_BYTES - 1))


def test_zero_counts_are_refused():
    raw = bytearray(Insn(Op.MAC).encode())
    blank = int.from_bytes(raw, "little")
    offset = 0
    for f in FORMATS[Op.MAC]:
        if f.name == "n0":
            blank &= ~(((1 << f.width) - 1) << offset)
        offset += f.width
    with pytest.raises(IsaError, match=r"MAC\.n0 must be at least 1, not 0"):
        Insn.decode(blank.to_bytes(INSN_BYTES, "little"))


@pytest.mark.parametrize("size", [0, 63, 65])
def test_wrong_length(size):
    with pytest.raises(IsaError, match=f"64 bytes, not {size}"):
        Insn.decode(bytes(size))


def test_unknown_fields():
    with pytest.raises(IsaError, match="LD1 has no field speed"):
        Insn(Op.LD1, {"speed": 3}).encode()
    with pytest.raises(IsaError, match="LD1 has no field 'speed'"):
        Insn(Op.LD1)["speed"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("END\nJMP 3", "line 2: no instruction 'JMP'"),
        ("LD2 size=3", "line 1: LD2 has no field 'size'; known are wait"),
        ("LD2 len", "LD2 has no field 'len'"),
        ("LD2 len=", r"LD2\.len takes a number, not ''"),
        ("MAC mode=SPARSE", r"MAC\.mode takes a number, not 'SPARSE'"),
        ("LD2 wait=-1", r"LD2\.wait takes a number, not '-1'"),
        ("LD2 wait=40", r"LD2\.wait must be 0 to"),
        ("LD2 len=0", r"LD2\.len must be 1 to 65535, not 0"),
        ("LD2 len=2 len=3", r"LD2\.len is given twice"),
    ],
)
def test_assembler_errors_name_line_field_and_limit(text, message):
    with pytest.raises(IsaError, match=message):
        assemble(text)


def test_assembler_syntax():
    text = "# comment\n\nld0 space=WGT view=interleaved pe_mask=0,1 wait=3 len=0x10 # tail\nld0 space=int4\nend\n"
    program = assemble(text)
    assert program == [
        Insn(Op.LD0, {"space": 1, "view": 1, "pe_mask": 3, "wait": 8, "len": 16}),
        Insn(Op.LD0, {"space": 3}),
        Insn(Op.END),
    ]


def test_disassembler_marks_what_it_cannot_decode():
    assert disassemble(bytes(INSN_BYTES) + Insn(Op.END).encode()) == "# 0: illegal opcode 0x00\nEND  # 1\n"
    with pytest.raises(IsaError, match="code length 3"):
        disassemble(bytes(3))


@given(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1))
def test_an_amount_is_added_to_one_field_of_one_instruction(value, amount):
    before = Insn(Op.LD2, {"src": value, "dst": 7, "len": 3, "dst_seg": 6}).encode()
    code = bytearray(before * 2)
    if value + amount < 1 << 32:
        add_to_field(code, 64, "src", amount)
        assert code == before + Insn(Op.LD2, {"src": value + amount, "dst": 7, "len": 3, "dst_seg": 6}).encode()
    else:
        with pytest.raises(IsaError, match=r"LD2\.src must be 0 to 4294967295, not"):
            add_to_field(code, 64, "src", amount)
        assert code == before * 2
