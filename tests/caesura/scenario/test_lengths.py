"""Models with a dynamic dimension in a scenario: lengths of streams, and files with inputs of any length."""

import numpy as np
import onnx
import pytest

from caesura.scenario import ScenarioError, parse_scenario, serve
from caesura.scenario.lengths import LengthRange, length_of
from compiler import CompileError, DynamicDimension, golden_outputs
from sim.backends import MODEL
from tests.caesura.scenario.test_real_models import content, stream
from tests.support.length_nets import conv_net

NET = {"onnx": "net.onnx", "dimension": "L"}


@pytest.fixture
def folder(tmp_path):
    """A folder with a network of any length."""
    onnx.save(conv_net((1, 1)), tmp_path / "net.onnx")
    return tmp_path


def served(folder, spec, *streams, **machine):
    told = content({"net": {**NET, **spec}}, *streams, **machine)
    return serve(parse_scenario(told, "x.toml"), "fcfs", MODEL, folder=folder, check=True)


def test_requests_have_the_lengths_of_their_stream(folder):
    once = served(folder, {"engines": [3, 1], "outputs": "out"}, stream("net", *range(4), lengths=[6, 9]))
    assert [frame.length for frame in once.outcome.frames] == [6, 9, 6, 9]
    assert (once.outcome.checked, once.mismatches) == (4, [])
    assert once.models[0].engines == (1, 3)
    for number, length in enumerate([6, 9, 6, 9]):
        with np.load(folder / "out" / f"net-{number}-0.npz") as file:
            assert next(iter(file.values())).shape[-1] == length


def test_each_length_is_compared_with_itself_alone(folder):
    """A request that waits for nobody has a normalised turnaround of 1, however long it is."""
    result = served(folder, {}, stream("net", 0, 100_000, 200_000, lengths=[4, 4, 40])).result
    assert result["antt"] == pytest.approx(1, abs=0.02)


def test_random_lengths_are_those_of_the_seed():
    lengths = LengthRange(least=3, most=9)
    drawn = [length_of(lengths, 1, "s", number) for number in range(200)]
    assert set(drawn) == set(range(3, 10))
    assert drawn == [length_of(lengths, 1, "s", number) for number in range(200)]
    assert drawn != [length_of(lengths, 2, "s", number) for number in range(200)]


def test_files_say_how_long_their_inputs_are(folder):
    """One sample alone, and two of a length along a leading axis."""
    rng = np.random.default_rng(0)
    one = rng.integers(-128, 128, (1, 4, 7)).astype(np.int8)
    two = rng.integers(-128, 128, (2, 1, 4, 11)).astype(np.int8)
    np.savez(folder / "one.npz", x=one)
    np.save(folder / "two.npy", two)
    found = served(folder, {"inputs": ["one.npz", "two.npy"], "outputs": "out"}, stream("net", *range(4)))
    assert (found.outcome.checked, found.mismatches) == (4, [])
    dimension = DynamicDimension.of(folder / "net.onnx")
    for number, sample in enumerate([one, two[0], two[1], one]):
        (wanted,) = golden_outputs(dimension.fixed(sample.shape[-1]), {"x": sample}).values()
        with np.load(folder / "out" / f"net-{number}-0.npz") as file:
            assert np.array_equal(next(iter(file.values())), wanted)


def test_a_dimension_that_is_not_there(folder):
    with pytest.raises(CompileError, match=r"model 'net': .*no input has a dynamic dimension 'M'; it has 'L'"):
        served(folder, {"dimension": "M"}, stream("net", 0, lengths=4))
    told = content({"net": {"onnx": "net.onnx"}})
    with pytest.raises(ScenarioError, match=r'sizes = { "L" = N } in \[models.net\], dimension = "L" there'):
        serve(parse_scenario(told, "x"), backend=MODEL, folder=folder)


def test_a_size_may_be_fixed_instead(folder):
    told = content({"net": {"onnx": "net.onnx", "sizes": {"L": 12}, "outputs": "out"}})
    serve(parse_scenario(told, "x"), backend=MODEL, folder=folder)
    with np.load(folder / "out" / "net-0-0.npz") as file:
        assert next(iter(file.values())).shape[-1] == 12
