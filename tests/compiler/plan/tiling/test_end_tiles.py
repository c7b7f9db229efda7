"""Cut tiles cover what the whole tile covered, in order, and only the ends of a job are cut."""

from hypothesis import given, strategies as st

from compiler.plan.layers.layer import ChannelTile
from compiler.plan.tiling.conv_tiling import ENDS, PixelTile, split, split_ends

SIDES = st.integers(1, 9)


def _pixels(tile: PixelTile) -> set[tuple[int, int]]:
    return {(y, x) for y in range(tile.y, tile.y + tile.rows) for x in range(tile.x, tile.x + tile.cols)}


@given(SIDES, SIDES, st.integers(1, 4))
def test_parts_are_disjoint_and_cover_the_tile(rows, cols, parts):
    tile = PixelTile(0, 0, 3, rows, 5, cols)
    cut = split(tile, parts)
    assert sum(part.pixels for part in cut) == tile.pixels
    assert set().union(*map(_pixels, cut)) == _pixels(tile)
    assert 1 <= len(cut) <= parts and all(part.pixels for part in cut)
    assert len(cut) == min(parts, max(rows, cols))


@given(st.integers(1, 5), st.sampled_from(ENDS))
def test_only_the_ends_are_cut(count, ends):
    channels = ChannelTile(0, 8, 0, 8)
    steps = [(channels, PixelTile(0, 0, 6 * i, 6, 0, 4)) for i in range(count)]
    cut = split_ends(steps, ends)
    first, last = (max(ends), 1) if count == 1 else ends
    assert len(cut) == count - 1 + first + (last - 1)
    assert cut[first : len(cut) - last] == steps[1:-1]
    rows = [(pixels.y, pixels.rows) for _, pixels in cut]
    assert [y for y, _ in rows] == [sum(length for _, length in rows[:i]) for i in range(len(rows))]
