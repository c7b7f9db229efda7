"""The weight segment holds each piece of data once, in whole bursts."""

from hypothesis import given, strategies as st

from compiler.emission.link.job_places import WeightSegment
from hw.contract.params import preset

PIECES = st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 1)), max_size=20)


@given(st.binary(max_size=128), PIECES)
def test_data_is_found_at_its_address_and_once(constants, pieces):
    segment = WeightSegment(constants + bytes(-len(constants) % 64), preset("base"), 2)
    addresses = {data: segment.append(data, engine) for data, engine in pieces}
    for data, address in addresses.items():
        assert address % 64 == 0 and segment.data[address : address + len(data)] == data
    size = len(segment.data)
    assert [segment.append(data, engine) for data, engine in pieces] == [addresses[data] for data, _ in pieces]
    assert len(segment.data) == size


def test_long_data_of_the_second_engine_begins_in_a_bank_behind():
    params = preset("base")
    banks = params.dram_banks * params.dram_row_bytes
    segment = WeightSegment(b"", params, 2)
    first, second = (segment.append(bytes([engine]) * banks, engine) for engine in (0, 1))
    assert first == 0 and second % banks == banks - banks // 4
