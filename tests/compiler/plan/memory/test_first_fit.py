"""First fit: buffers with lifetimes in an address range."""

from hypothesis import given, strategies as st

from compiler.plan.memory.first_fit import FirstFit

BUFFERS = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 9), st.integers(0, 4)), max_size=30)


def apart(a, b):
    """Lives are (first, last), both included."""
    return a[1] < b[0] or b[1] < a[0]


@given(BUFFERS, st.integers(64, 600))
def test_buffers_alive_together_never_overlap(buffers, limit):
    memory = FirstFit(limit, 8, apart, base=16)
    for size, start, length in buffers:
        offset = memory.place(size, (start, start + length))
        assert offset is None or (offset % 8 == 0 and offset >= 16 and offset + size <= limit)
    for i, a in enumerate(memory.placed):
        for b in memory.placed[:i]:
            separate = a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
            assert separate or apart(a.buffer, b.buffer)


def test_bytes_are_used_again_after_a_buffer_died():
    memory = FirstFit(100, 1, apart)
    assert memory.place(100, (0, 3)) == 0
    assert memory.place(50, (3, 4)) is None
    assert memory.place(50, (4, 5)) == 0
    assert memory.extent == 100
