import math

import pytest
from hypothesis import given, strategies as st

from hw.contract.params import preset
from hw.image.image import Image, ImageError
from hw.image.kernel_attributes import EVERYTHING, LARGEST, AttributeProblem, KernelAttributes, ValueRange
from tests.support.images import copy_image

HEAD = {"operation": "attention", "head_size": 80, "causal": False}


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [(512, 512, 512), ("128..1024", 128, 1024), ("..", 1, LARGEST), ("7..7", 7, 7), (LARGEST, LARGEST, LARGEST)],
)
def test_values_and_ranges(written, low, high):
    found = ValueRange.read(written)
    assert (found.low, found.high) == (low, high)
    assert (found.exact, found.universal) == (low == high, written == "..")
    assert ValueRange.read(found.written()) == found
    assert found.covers(low) and found.covers(high) and not found.covers(low - 1) and not found.covers(high + 1)


NAN = math.nan
HOSTILE = [
    ({"class_1": HEAD, "class_2": {"n": 0}}, "class-2 value 'n' must be a whole number of 1 to 2147483647, not 0"),
    ({"class_1": HEAD, "class_2": {"n": -5}}, "not -5"),
    ({"class_1": HEAD, "class_2": {"n": LARGEST + 1}}, "not 2147483648"),
    ({"class_1": HEAD, "class_2": {"n": 10**10000}}, "not a int too large to show"),
    ({"class_1": HEAD, "class_2": {"n": NAN}}, "not nan"),
    ({"class_1": HEAD, "class_2": {"n": 128.0}}, r"not 128\.0"),
    ({"class_1": HEAD, "class_2": {"n": True}}, "not True"),
    ({"class_1": HEAD, "class_2": {"n": None}}, "not None"),
    ({"class_1": HEAD, "class_2": {"n": "128"}}, r"such as '128\.\.1024'"),
    ({"class_1": HEAD, "class_2": {"n": "-1..5"}}, "not '-1..5'"),
    ({"class_1": HEAD, "class_2": {"n": "1024..128"}}, "must go up"),
    ({"class_1": HEAD, "class_2": {"n": "0..128"}}, "at least 1"),
    ({"class_1": HEAD, "class_2": {"n": "1..9999999999"}}, "at most 2147483647"),
    ({"class_1": HEAD, "class_2": {"n": "1.." + "9" * 10**6}}, "class-2 value 'n'"),
    ({"class_1": HEAD, "class_2": {"n": "128.."}}, "class-2 value 'n'"),
    ({"class_1": HEAD, "class_2": {"n": "١..٢"}}, "class-2 value 'n'"),  # digits, but not ours
    ({"class_1": HEAD, "class_2": {}}, "one value or range"),
    ({"class_1": HEAD, "class_2": {"n": 1, "m": 2}}, "one value or range"),
    ({"class_1": HEAD, "class_2": 5}, "one value or range"),
    ({"class_1": HEAD}, "entries 'class_1' and 'class_2'"),
    ({"class_1": HEAD, "class_2": {"n": 1}, "class_3": {}}, "entries 'class_1' and 'class_2'"),
    ({"class_1": [], "class_2": {"n": 1}}, "values by name"),
    ({"class_1": {"a": NAN}, "class_2": {"n": 1}}, "class-1 value 'a' must be true, false.*not nan"),
    ({"class_1": {"a": 2**63}, "class_2": {"n": 1}}, "class-1 value 'a'"),
    ({"class_1": {"a": ""}, "class_2": {"n": 1}}, "class-1 value 'a'"),
    ({"class_1": {"a": "x" * 201}, "class_2": {"n": 1}}, "class-1 value 'a'"),
    ({"class_1": {"a": "line\nbreak"}, "class_2": {"n": 1}}, "class-1 value 'a'"),
    ({"class_1": {"a": [1]}, "class_2": {"n": 1}}, "class-1 value 'a'"),
    ({"class_1": {"a": "64..128"}, "class_2": {"n": 1}}, "must be a single value"),
    ({"class_1": {"": 1}, "class_2": {"n": 1}}, "names of attributes"),
    ({"class_1": {"a b": 1}, "class_2": {"n": 1}}, "names of attributes"),
    ({"class_1": {"n": 1}, "class_2": {"n": 1}}, "in class_1 and in class_2"),
    ({"class_1": {f"a{i}": 1 for i in range(65)}, "class_2": {"n": 1}}, "65 values; at most 64"),
]


@pytest.mark.parametrize(("raw", "message"), HOSTILE)
def test_hostile_attributes_are_refused_by_name(raw, message):
    with pytest.raises(AttributeProblem, match=message) as caught:
        KernelAttributes.parse(raw)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("raw", [None, 5, "..", [], float("nan")])
def test_what_is_no_table_is_refused(raw):
    with pytest.raises(AttributeProblem, match="entries"):
        KernelAttributes.parse(raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.fixed_dictionaries({"class_1": json_values, "class_2": json_values}) | json_values)
def test_anything_is_read_or_refused(raw):
    try:
        found = KernelAttributes.parse(raw)
    except AttributeProblem:
        return
    assert KernelAttributes.parse(found.to_dict()) == found


def test_the_key_is_one_object_and_tells_types_apart():
    first = KernelAttributes.of({"a": 1, "b": "x"}, "n", 5)
    assert first.key is KernelAttributes.of({"b": "x", "a": 1}, "n", "..").key
    others = [({"a": True, "b": "x"}, "n"), ({"a": "1", "b": "x"}, "n"), ({"a": 1, "b": "x"}, "m"), ({"a": 1}, "n")]
    assert len({first.key, *(KernelAttributes.of(values, name, 5).key for values, name in others)}) == 5
    assert KernelAttributes.of({}, "n", "..").covered == EVERYTHING


def test_an_image_is_checked_when_it_is_loaded():
    image = copy_image(preset("tiny"))
    image.meta.kernel_attributes = KernelAttributes.of(HEAD, "sequence", "128..1024").to_dict()
    loaded = Image.from_bytes(image.to_bytes())
    assert KernelAttributes.parse(loaded.meta.kernel_attributes).covered == ValueRange(128, 1024)
    image.meta.kernel_attributes["class_2"] = {"sequence": "1024..128"}
    with pytest.raises(ImageError, match=r"a\.cimg: kernel_attributes: class-2 range 'sequence' must go up"):
        Image.from_bytes(image.to_bytes(), "a.cimg")
