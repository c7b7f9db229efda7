import pytest
from hypothesis import given, strategies as st

from hw.contract.isa import SEGMENTS
from hw.contract.job import COMPLETION, COUNTERS, JOB, Fault, FaultUnit
from hw.contract.layout import LayoutError, Member, Record

RECORDS = pytest.mark.parametrize("record", [JOB, COMPLETION], ids=lambda r: r.name)


@given(st.sampled_from([JOB, COMPLETION]), st.data())
def test_unpack_inverts_pack(record, data):
    values = {m.name: data.draw(st.integers(0, (1 << 8 * m.size) - 1)) for m in record.members}
    raw = record.pack(**values)
    assert len(raw) == record.size
    assert record.unpack(raw) == values


@RECORDS
def test_one_byte_belongs_to_one_member(record):
    for member in record.members:
        raw = record.pack(**{member.name: (1 << 8 * member.size) - 1})
        place = range(member.offset, member.offset + member.size)
        assert [i for i, byte in enumerate(raw) if byte] == list(place)


@RECORDS
def test_members_refuse_values_out_of_range(record):
    for m in record.members:
        for value in (-1, 1 << 8 * m.size):
            with pytest.raises(LayoutError, match=rf"{record.name}\.{m.name} must be 0 to"):
                record.pack(**{m.name: value})


@RECORDS
def test_members_are_naturally_aligned(record):
    """So that hardware takes each from one bus word."""
    for m in record.members:
        assert m.offset % m.size == 0
        assert m.doc


def test_record_sizes():
    """Descriptors and completions are whole bursts, and the segment table is a whole half of the descriptor."""
    assert JOB.size == COMPLETION.size == 256
    assert JOB["base0"].offset == 128
    assert JOB[f"limit{SEGMENTS - 1}"].offset < 256


def test_completion_holds_every_counter_in_order():
    start = COMPLETION[COUNTERS[0][0]].offset
    assert [COMPLETION[name].offset for name, _ in COUNTERS] == [start + 4 * i for i in range(len(COUNTERS))]


def test_codes_fit_their_bytes():
    assert max(Fault) < 256 and max(FaultUnit) < 256


def test_wrong_record_length_and_unknown_member():
    with pytest.raises(LayoutError, match="job has 256 bytes, not 255"):
        JOB.unpack(bytes(255))
    with pytest.raises(LayoutError, match="job has no member 'speed'"):
        JOB.pack(speed=1)


@pytest.mark.parametrize("second", [Member("b", 3, 4, ""), Member("b", 14, 4, "")])
def test_impossible_records_are_refused(second):
    with pytest.raises(LayoutError, match=r"r\.b overlaps its neighbour or leaves the record"):
        Record("r", 16, (Member("a", 0, 4, ""), second))
