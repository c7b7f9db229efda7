"""Range kernels of encoders: every length is exact, free of races, and may be preempted anywhere, as any image is."""

import numpy as np
import onnx
import pytest

import caesura
from benchmarks.workloads import workload
from caesura.model_cycles import model_cycles
from compiler import reference
from compiler.compile import compile_model
from compiler.dynamic_dimension import DynamicDimension
from compiler.frontend import import_model
from compiler.ir import Graph
from compiler.plan.options import Options
from compiler.search.ranges import compile_range
from examples.encoder import LENGTHS, MODEL, demo
from examples.encoder.reference import integer_logits
from hw.contract.params import preset
from hw.image.image import Image
from hw.image.kernel_attributes import KernelAttributes
from hw.image.range_image import RangeImage
from tests.support.check.preemption import check_points
from tests.support.check.races import RaceChecker
from tests.support.check.windows import window_clashes
from tests.support.image_runner import run_image

BASE = preset("base")


def ranged(dimension, lengths, **options) -> RangeImage:
    attributes = KernelAttributes.of({"model": dimension.model}, "length", f"{min(lengths)}..{max(lengths)}")
    made = compile_range(dimension, BASE, lengths, attributes, Options(**options))
    return RangeImage.from_bytes(made.to_bytes())


def bert(name: str) -> DynamicDimension:
    """An encoder of the benchmarks with its length left open."""
    model = onnx.load(workload(name))
    del model.graph.value_info[:]
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.shape.dim[1].dim_param = "L"
    return DynamicDimension.of(model)


def feeds(graph: Graph, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Random inputs by port, as the user gives them and as memory holds them."""
    rng = np.random.default_rng(seed)
    given = {port.name: rng.standard_normal(port.shape).astype(np.float32) for port in graph.inputs}
    return given, {port.name: reference.to_memory(port, given[port.name], graph) for port in graph.inputs}


def checked(dimension: DynamicDimension, image: Image, length: int, seed: int) -> None:
    """Run with race detection; every tensor of the image equals the reference's."""
    graph = import_model(dimension.fixed(length))
    given, stored = feeds(graph, seed)
    expected = reference.run_all(graph, given)
    results = run_image(image, stored, observer=RaceChecker(BASE))
    assert not window_clashes(image, stored)
    for info in image.meta.outputs:
        wanted = next(port.tensor for port in graph.outputs if port.name == info.name)
        np.testing.assert_array_equal(results[info.tensor], expected[wanted], err_msg=f"length {length}, seed {seed}")


@pytest.fixture(scope="module")
def encoder() -> RangeImage:
    """The trained encoder for all lengths of its data set, on two engines. Layers keep their order: the search for one
    is most of the time."""
    return ranged(DynamicDimension.of(MODEL), LENGTHS, engines=2, order="source")


def test_few_stretches_and_little_to_keep(encoder):
    assert encoder.lengths == list(LENGTHS) and len(encoder.stretches) <= 8
    assert len(encoder.to_bytes()) < sum(len(encoder.image(length).to_bytes()) for length in LENGTHS) / 5


def test_the_shortest_of_a_stretch_takes_little_longer_than_alone(encoder):
    """By decisions for 32 tokens, 17 would take 9 % more cycles."""
    lv2 = encoder.image(LENGTHS[-1]).meta.lv2_bytes
    options = Options(engines=2, order="source", lv2_limit=lv2)
    alone = compile_model(DynamicDimension.of(MODEL).fixed(17), BASE, options=options, jobs=1)
    assert model_cycles(encoder.image(17)) < 1.05 * model_cycles(alone)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_length_equals_the_reference(encoder, step):
    """Every ``step``-th. Images of digits, and for lengths that none has parts of several."""
    samples = np.concatenate(demo.samples(20)[0])
    with caesura.open(BASE, "model") as device:
        for length in LENGTHS[::step]:
            model = device.load(encoder.image(length))
            tokens = samples[np.random.default_rng(length).permutation(len(samples))[:length]]
            np.testing.assert_array_equal(model(tokens[np.newaxis]), integer_logits([tokens]))
            device.unload(model)


@pytest.mark.parametrize("length", [27, *(pytest.param(length, marks=pytest.mark.slow) for length in (19, 38))])
def test_free_of_races(encoder, length):
    """Within stretches, whose decisions were made for a longer input."""
    checked(DynamicDimension.of(MODEL), encoder.image(length), length, seed=length)


@pytest.mark.parametrize("engines", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_preempted_at_every_point(engines):
    """Points stand where the longest length of the stretch has them; what is live there is of this length."""
    dimension = DynamicDimension.of(MODEL)
    kernel = ranged(dimension, range(22, 31), engines=engines, order="source", cancel_interval=1500)
    stretch = max(kernel.stretches, key=lambda stretch: len(stretch.lengths))
    assert len(stretch.lengths) > 2
    length = stretch.lengths[1]
    _, stored = feeds(import_model(dimension.fixed(length)), 5)
    report = check_points(kernel.image(length), stored)
    assert report.ok, report
    assert len(report.points) >= 8, report


def test_no_length_of_an_encoder_that_must_be_cut_otherwise_is_lost():
    """One layer of BERT-tiny around a multiple of the tile's rows."""
    dimension = bert("bert_tiny_1x40")
    kernel = ranged(dimension, range(30, 36), engines=2, order="source")
    for length in kernel.lengths:
        checked(dimension, kernel.image(length), length, seed=length)


@pytest.mark.slow
@pytest.mark.parametrize("engines", [1, 2])
def test_every_length_of_one_layer_of_bert(engines):
    """Against exact kernels, on the fast model."""
    dimension, lengths = bert("bert_tiny_1x96"), range(1, 97)
    kernel = ranged(dimension, lengths, engines=engines)
    with caesura.open(BASE, "model") as device:
        for length in lengths:
            x = np.random.default_rng(length).standard_normal((1, length, 128)).astype(np.float32)
            exact = compile_model(dimension.fixed(length), BASE, options=Options(engines=engines), jobs=1)
            results = []
            for image in (exact, kernel.image(length)):
                model = device.load(image)
                results.append(np.asarray(model(x)))
                device.unload(model)
            np.testing.assert_array_equal(*results, strict=True, err_msg=f"length {length}")


@pytest.mark.slow
def test_a_sample_of_lengths_on_the_rtl(encoder):
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    rng = np.random.default_rng(seed)
    samples = np.concatenate(demo.samples(20)[0])
    with caesura.open(BASE, "native") as device:
        for length in rng.choice(LENGTHS, 4, replace=False):
            model = device.load(encoder.image(int(length)))
            tokens = samples[rng.permutation(len(samples))[:length]]
            np.testing.assert_array_equal(model(tokens[np.newaxis]), integer_logits([tokens]))
            device.unload(model)
