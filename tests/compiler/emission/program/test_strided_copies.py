"""Strided copies cut into single instructions equal NumPy's permutation."""

import numpy as np
from hypothesis import given, settings, strategies as st

from compiler.emission.program.copies import CopyLoop, copy_fields, merge, tiles


@settings(max_examples=60)
@given(st.permutations(range(4)), st.lists(st.integers(1, 7), min_size=4, max_size=4), st.integers(1, 300))
def test_tiles_cover_a_permutation(perm, shape, size):
    data = np.arange(np.prod(shape)).reshape(shape)
    steps = [int(np.prod(shape[i + 1 :])) for i in range(4)]
    dims, pitch = [], 1
    for axis in reversed(perm):
        dims.append((shape[axis], steps[axis], pitch))
        pitch *= shape[axis]
    result = np.full(data.size, -1)
    for src, dst, tile in tiles(merge(dims[::-1]), size):
        assert np.prod([count for count, _, _ in tile]) <= size
        fields = copy_fields(src, dst, [CopyLoop(*dim) for dim in tile], 1)
        box = (fields["n2"], fields["n1"], fields["n0"], fields["len"])
        for i2, i1, i0, j in np.ndindex(*box):
            at = [fields[f"{e}_s2"] * i2 + fields[f"{e}_s1"] * i1 + fields[f"{e}_s0"] * i0 + j for e in ("src", "dst")]
            result[dst + at[1]] = data.reshape(-1)[src + at[0]]
    assert np.array_equal(result, data.transpose(perm).reshape(-1))
