"""**Run-time kernel matching**: the worked example, and every match against a naive search."""

import math

import pytest
from hypothesis import given, strategies as st

from hw.image.kernel_attributes import LARGEST, AttributeProblem, KernelAttributes
from sw.kernels import (
    DuplicateKernelError,
    KernelDemand,
    KernelLibrary,
    KernelOperation,
    LibraryKernel,
    NoKernelError,
    Parameter,
    Quotient,
    demands_of,
)


def kernel(name, covered, **class_1):
    return LibraryKernel(name, KernelAttributes.of(class_1, "sequence", covered), None)


def example():
    """Of METHODS, section 5."""
    return KernelLibrary(
        [kernel("a", 512, head_size=80), kernel("b", 1024, head_size=80), kernel("c", "128..1024", head_size=80)]
    )


ATTENTION = KernelOperation("attention", {"head_size": Quotient("total_head_size", "heads")}, ("sequence", "length"))


@pytest.mark.parametrize(("length", "name"), [(1024, "b"), (128, "c"), (512, "a"), (513, "c"), (1023, "c")])
def test_worked_example(length, name):
    (demand,) = demands_of([ATTENTION], {"total_head_size": 160, "heads": 2})
    assert demand.class_1 == {"head_size": 80}
    assert example().match(demand, length).name == name
    assert example().match_all([demand], {"length": length})["attention"].name == name


def test_worked_example_no_kernel():
    (demand,) = demands_of([ATTENTION], {"total_head_size": 160, "heads": 2})
    with pytest.raises(NoKernelError) as caught:
        example().match(demand, 2048)
    assert str(caught.value) == (
        "no kernel for operation 'attention' (head_size 80) at sequence 2048: "
        "the nearest are 'b' (sequence 1024), 'c' (sequence 128..1024), 'a' (sequence 512)"
    )
    assert [near.name for near in caught.value.nearest] == ["b", "c", "a"]
    assert example().match_all([demand], {"length": 2048}, fallback=True) == {"attention": None}


def test_other_class_1_values_are_told():
    library = KernelLibrary([kernel("a", "..", head_size=80, causal=True), kernel("b", 3, head_size=64, causal=False)])
    with pytest.raises(NoKernelError, match=r"none has its class-1 values: 'b' \(sequence 3\) has no heads; 'a'"):
        library.match(KernelDemand("x", {"head_size": 64, "causal": False, "heads": 1}, "sequence"), 3)
    with pytest.raises(NoKernelError, match=r"'a' \(sequence \.\.\) has causal True"):
        library.match(KernelDemand("x", {"head_size": 80, "causal": 1}, "sequence"), 3)
    with pytest.raises(NoKernelError, match="class-2 parameter 'sequence'"):
        library.match(KernelDemand("x", {"head_size": 80, "causal": True}, "length"), 3)
    with pytest.raises(NoKernelError, match="the library is empty"):
        KernelLibrary().match(KernelDemand("x", {}, "sequence"), 3)


def test_operations_without_a_mark_are_left_alone():
    operations = [
        ATTENTION,
        KernelOperation("soft", {"head_size": Parameter("missing")}, ("sequence", "length"), False),
    ]
    demands = demands_of(operations, {"total_head_size": 160, "heads": 2})
    assert [demand.operation for demand in demands] == ["attention"]
    assert list(example().match_all(demands, {"length": 512})) == ["attention"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"heads": 2}, "operation 'attention': the model's description has no 'total_head_size'; it has heads"),
        ({"total_head_size": 160, "heads": 3}, r"'total_head_size' \(160\) is no multiple of 'heads' \(3\)"),
        ({"total_head_size": 160, "heads": 0}, "'heads' must be a whole number of at least 1, not 0"),
        ({"total_head_size": "160", "heads": 2}, "'total_head_size' must be a whole number"),
        ({"total_head_size": 160, "heads": True}, "'heads' must be a whole number of at least 1, not True"),
    ],
)
def test_descriptions_that_yield_no_demand(model, message):
    with pytest.raises(AttributeProblem, match=message):
        demands_of([ATTENTION], model)


@pytest.mark.parametrize(
    "value",
    [0, -1, LARGEST + 1, 10**400, 512.0, math.nan, math.inf, True, "512", None, [512]],
    ids=lambda value: repr(value)[:20],
)
def test_values_that_no_request_has(value):
    library = KernelLibrary([kernel("a", 512), kernel("every", ".."), kernel("one", 1)])
    demand = KernelDemand("x", {}, "sequence")
    for ask in (library.match, library.find):
        with pytest.raises(
            AttributeProblem, match="class-2 value 'sequence' must be a whole number of 1 to 2147483647"
        ):
            ask(demand, value)
    with pytest.raises(AttributeProblem):
        library.match_all([demand], {"sequence": value})


def test_a_current_value_that_is_missing_is_named():
    with pytest.raises(AttributeProblem, match="'x' needs the current value of 'length'; given are 'width'"):
        example().match_all([KernelDemand("x", {}, "sequence", "length")], {"width": 1})


numbers = st.integers(1, 24)
covered = (
    numbers
    | st.tuples(numbers, numbers).map(lambda ends: f"{min(ends)}..{max(ends)}")
    | st.just("..")
    | st.just(f"20..{LARGEST}")
)
described = st.tuples(st.sampled_from([{}, {"h": 1}, {"h": True}, {"h": "1"}, {"h": 2, "k": 1}]), covered)


def naive(kernels, class_1, value):
    """The text of the method, word by word."""
    same = [k for k in kernels if repr(sorted(k.attributes.class_1.items())) == repr(sorted(class_1.items()))]
    for one in same:
        if one.attributes.covered.written() == value:
            return one
    ranges = [k for k in same if k.attributes.covered.low <= value <= k.attributes.covered.high]
    return min(ranges, key=lambda k: k.attributes.covered.high - k.attributes.covered.low, default=None)


@given(st.lists(st.lists(described, max_size=6), max_size=6), st.data())
def test_matches_are_those_of_a_naive_search(batches, data):
    library, kept = KernelLibrary(), []
    for batch in batches:
        for class_1, written in batch:
            one = kernel(f"k{len(kept)}", written, **class_1)
            if any(o.attributes == one.attributes for o in kept):
                with pytest.raises(DuplicateKernelError):
                    library.add(one)
                continue
            library.add(one)
            kept.append(one)
        if kept and data.draw(st.booleans()):
            library.remove(kept.pop(data.draw(st.integers(0, len(kept) - 1))))
        assert len(library) == len(kept) and set(library) == set(kept)
        for class_1 in ({}, {"h": 1}, {"h": True}, {"h": "1"}, {"h": 2, "k": 1}, {"h": 3}):
            demand = KernelDemand("x", class_1, "sequence")
            for value in (*range(1, 27), LARGEST):
                wanted = naive(kept, class_1, value)
                assert library.find(demand, value) is wanted
                if wanted is None:
                    with pytest.raises(NoKernelError):
                        library.match(demand, value)
                else:
                    assert library.match(demand, value) is wanted


def test_the_narrowest_of_several_ranges_wins():
    library = KernelLibrary([kernel("all", ".."), kernel("wide", "1..100"), kernel("narrow", "40..60")])
    demand = KernelDemand("x", {}, "sequence")
    assert [library.match(demand, n).name for n in (50, 39, 61, 101)] == ["narrow", "wide", "wide", "all"]
    library.add(kernel("exact", 50), kernel("same width", "60..80"))
    assert [library.match(demand, n).name for n in (50, 60, 61)] == ["exact", "narrow", "same width"]


def test_additions_are_whole_or_not_at_all():
    library = example()
    with pytest.raises(DuplicateKernelError, match=r"kernel 'e' \(sequence 512\) has the attributes of 'a'"):
        library.add(kernel("d", 64, head_size=80), kernel("e", 512, head_size=80))
    assert len(library) == 3
    with pytest.raises(KeyError, match="not in the library"):
        library.remove(kernel("a", 512, head_size=80))


def test_the_key_is_not_built_again(monkeypatch):
    library, demand = example(), KernelDemand("x", {"head_size": 80}, "sequence")
    monkeypatch.setattr("hw.image.kernel_attributes.json.dumps", None)
    assert library.match(demand, 512).name == "a"
