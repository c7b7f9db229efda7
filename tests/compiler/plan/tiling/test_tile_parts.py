"""Parts of a pixel tile that are computed side by side: they cover it, and stay inside."""

from hypothesis import given, strategies as st

from compiler.plan.tiling.tile_parts import tile_parts


@given(st.integers(1, 30), st.integers(1, 30), st.sampled_from([1, 2, 4, 8]))
def test_parts_cover_a_tile_and_stay_inside(rows, cols, count):
    parts = tile_parts(rows, cols, count)
    found = {
        (y + part * parts.y_step, x + part * parts.x_step)
        for part in range(count)
        for y in range(parts.rows)
        for x in range(parts.cols)
    }
    assert found == {(y, x) for y in range(rows) for x in range(cols)}
    assert parts.alike == (parts.pixels == rows * cols)


@given(st.integers(1, 200), st.integers(1, 200))
def test_halves_are_no_larger_than_they_must_be(rows, cols):
    parts = tile_parts(rows, cols, 2)
    least = -(-rows // 2) * cols if rows > 1 else -(-cols // 2)
    assert parts.pixels == least
