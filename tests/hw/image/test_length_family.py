"""Values and words for a run of lengths: each comes out as it went in, and little is kept of what follows a curve."""

import copy
import random

import numpy as np
import pytest

from hw.image.length_family import ValueFamily, WordFamily

CURVES = (lambda n: 7, lambda n: 4 * n + 3, lambda n: n * n * 64, lambda n: 5000 - 12 * n, lambda n: -(n * n) % 2**32)


@pytest.mark.parametrize("lengths", [range(1, 2), range(5, 7), range(17, 33), range(4, 385, 4)])
def test_words_that_follow_a_curve(lengths):
    """Products of two affine numbers are curves, also where they count modulo 2^32."""
    strings = [b"".join((curve(n) % 2**32).to_bytes(4, "little") for curve in CURVES) for n in lengths]
    family = WordFamily.of(strings)
    assert len(family.listed) == 0 and len(family.curved) == (len(lengths) > 1) * (len(CURVES) - 1)
    assert [family.at(k) for k in range(len(lengths))] == strings
    assert family.problem(len(lengths)) is None


def test_any_strings_come_out_again():
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(50):
        count = int(rng.integers(1, 9))
        strings = [rng.integers(0, 3, int(rng.integers(0, 40))).astype(np.uint8).tobytes() for _ in range(count)]
        family = WordFamily.of(strings)
        assert [family.at(k) for k in range(count)] == strings


def test_values_of_json():
    """Lists that differ in length, other types and texts are columns; equal numbers are kept once."""
    values = [
        {"a": n, "b": [n * n, {"c": "x"}], "d": [0] * (n % 3), "e": n > 4, "f": 1 if n > 4 else 1.0, "g": f"t{n // 4}"}
        for n in range(3, 8)
    ]
    family = ValueFamily.of(values)
    assert {path for path, _ in family.curves} == {("a",), ("b", 0)}
    assert {path for path, _ in family.columns} == {("d",), ("e",), ("f",), ("g",)}
    made = [family.set_in(copy.deepcopy(family.base), k) for k in range(len(values))]
    assert made == values and [type(each["f"]) for each in made] == [type(each["f"]) for each in values]


def test_values_without_a_common_part():
    family = ValueFamily.of([[1], {"a": 1}, 3])
    assert [family.set_in(copy.deepcopy(family.base), k) for k in range(3)] == [[1], {"a": 1}, 3]


def test_inconsistent_arrays():
    good = WordFamily.of([bytes([0, 0, 0, n, n * n * n, 0, 0, 0]) for n in range(5)])
    assert good.problem(5) is None
    assert "do not fit" in good.problem(4)
    assert "words beyond" in WordFamily(good.base[:0], *list(vars(good).values())[1:]).problem(5)
    assert "a string of 99 bytes" in WordFamily(*list(vars(good).values())[:-1], good.sizes + 91).problem(5)
