"""The committed encoder: its accuracy, its interface, and that the training script describes it."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from examples.digits.data import load_split
from examples.digits.evaluate import accuracy, reference_logits
from examples.encoder import LENGTHS, MODEL, SAMPLES, network
from examples.encoder.demo import samples
from examples.encoder.export import float_model
from examples.encoder.reference import integer_logits
from examples.encoder.tokens import FEATURES, PATCH, SIDE, sequences, tokens_of
from examples.encoder.train import BATCH, MIN_INT8_ACCURACY, MOST_DROPPED, batches, moved, thinned, train
from sim.host import session

FLOAT_ACCURACY = 0.9889  #: of the committed model before quantisation, as the training script told


@pytest.fixture(scope="module")
def split():
    return load_split()


@pytest.fixture(scope="module")
def held_out(split):
    return sequences(split.held_out_images)


@pytest.fixture(scope="module")
def model():
    return onnx.load(MODEL)


def shape(value):
    return [dimension.dim_value or dimension.dim_param for dimension in value.type.tensor_type.shape.dim]


def test_int8_accuracy_on_held_out_images(split, held_out):
    assert accuracy(MODEL, held_out, split.held_out_labels) >= MIN_INT8_ACCURACY


def test_integer_reference_is_the_model_as_written(split, held_out, model):
    """On all held-out images: what the device computes is what onnxruntime computes where it fuses nothing."""
    ours = integer_logits(held_out)
    run = session(model, as_written=True)
    wanted = np.concatenate([run.run(None, {"tokens": image[np.newaxis]})[0] for image in held_out])
    scale = next(numpy_helper.to_array(t) for t in model.graph.initializer if t.name == "logits_scale")
    steps = np.rint(np.abs(ours - wanted) / scale)
    assert steps.max() <= 1 and steps.mean() < 0.05
    right = ours.argmax(axis=1) == split.held_out_labels
    assert right.mean() >= FLOAT_ACCURACY - 0.01


def test_signature(model):
    (source,), (result,) = model.graph.input, model.graph.output
    assert (source.name, shape(source)) == ("tokens", [1, "length", FEATURES])
    assert (result.name, shape(result)) == ("logits", [1, 10])


def test_model_is_small_and_valid(model):
    assert MODEL.stat().st_size < 300_000
    onnx.checker.check_model(model, full_check=True)


def test_committed_model_has_the_structure_of_the_training_script(model):
    exported = float_model(network.initial_parameters(np.random.default_rng(0)))
    kept = [node for node in model.graph.node if node.op_type not in ("QuantizeLinear", "DequantizeLinear")]
    described = [(node.name, node.op_type) for node in exported.graph.node]
    assert sorted((node.name, node.op_type) for node in kept) == sorted(described)

    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for tensor in exported.graph.initializer:
        value = numpy_helper.to_array(tensor)
        if tensor.name.endswith(".shape"):
            np.testing.assert_array_equal(constants[tensor.name], value)
            continue
        quantised = constants[f"{tensor.name}_quantized"]
        assert quantised.shape == value.shape
        assert quantised.dtype == (np.int32 if tensor.name.endswith("bias") else np.int8)


def test_no_shape_names_a_length(model):
    shapes = [numpy_helper.to_array(t) for t in model.graph.initializer if t.name.endswith(".shape")]
    assert len(shapes) >= 2 + 4 * network.LAYERS
    assert all(list(each).count(-1) == 1 for each in shapes)


def test_network_agrees_with_its_onnx_export(tmp_path, held_out):
    parameters = network.initial_parameters(np.random.default_rng(0))
    onnx.save(float_model(parameters), tmp_path / "float.onnx")
    lengths = {len(image): image for image in held_out}
    assert len(lengths) > 10
    expected = reference_logits(tmp_path / "float.onnx", lengths.values())
    ours = np.concatenate([network.logits(parameters, image[np.newaxis]) for image in lengths.values()])
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_gradient_agrees_with_finite_differences(split):
    """Every parameter, at its largest gradient and at a random place."""
    rng = np.random.default_rng(3)
    parameters = {name: value.astype(np.float64) for name, value in network.initial_parameters(rng).items()}
    for name in parameters:
        parameters[name] = parameters[name] + rng.normal(0, 0.1, parameters[name].shape)
    tokens = np.stack([image[:20] for image in sequences(split.train_images[:3])]).astype(np.float64)
    labels = split.train_labels[:3]
    _, gradient = network.loss_and_gradient(parameters, tokens, labels)
    assert set(gradient) == set(parameters)
    step = 1e-4
    for name, slopes in gradient.items():
        for place in (np.abs(slopes).argmax(), rng.integers(slopes.size)):
            index = np.unravel_index(place, slopes.shape)
            losses = []
            for change in (step, -step):
                changed = parameters | {name: parameters[name].copy()}
                changed[name][index] += change
                losses.append(network.loss_and_gradient(changed, tokens, labels)[0])
            assert slopes[index] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-3, abs=1e-6), name


def test_training_is_seeded(split):
    images = sequences(split.train_images[:96])
    first, second = (train(images, split.train_labels[:96], epochs=1) for _ in range(2))
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])


def test_batches_have_one_length_and_all_sequences():
    lengths = np.random.default_rng(5).integers(3, 9, 400)
    drawn = batches(lengths, np.random.default_rng(6))
    assert sorted(np.concatenate(drawn)) == list(range(400))
    assert all(len(batch) <= BATCH and len(set(lengths[batch])) == 1 for batch in drawn)


def test_thinned_sequences_keep_their_order():
    rng = np.random.default_rng(8)
    tokens = np.tile(np.arange(30, dtype=np.float32)[:, np.newaxis], (5, 1, 2))
    lengths = set()
    for _ in range(60):
        result = thinned(tokens, rng)
        lengths.add(result.shape[1])
        assert result.shape[::2] == (5, 2) and (np.diff(result, axis=1) > 0).all()
    assert (min(lengths), max(lengths)) == (30 - MOST_DROPPED * 30, 30)


def test_moved_tokens_are_those_of_a_moved_image():
    rng = np.random.default_rng(7)
    image = np.zeros((1, SIDE, SIDE), np.float32)  # blank at every edge but one
    image[0, 1:7, 0:5] = rng.integers(1, 17, (6, 5)) / 16
    tokens = tokens_of(image)
    seen = set()
    for _ in range(40):
        (result,) = moved(tokens[np.newaxis], rng)
        found = [
            (down, right)
            for down in (-1, 0, 1)
            for right in (-1, 0, 1)
            if np.array_equal(result, tokens_of(np.roll(image, (down, right), (1, 2))))
        ]
        assert len(found) == 1
        seen.update(found)
    assert seen == {(down, right) for down in (-1, 0, 1) for right in (0, 1)}, "never over the edge"


def test_a_token_is_a_dark_pixel(split):
    image = split.train_images[0]
    tokens = tokens_of(image)
    rebuilt = np.zeros_like(image)
    rows, columns = tokens[:, :SIDE].argmax(1), tokens[:, SIDE : 2 * SIDE].argmax(1)
    patches = tokens[:, 2 * SIDE :].reshape(-1, PATCH, PATCH)
    rebuilt[0, rows, columns] = patches[:, 1, 1]
    np.testing.assert_array_equal(rebuilt, image)
    assert (tokens[:, : 2 * SIDE].sum(axis=1) == 2).all() and (patches[:, 1, 1] > 0).all()
    inner = np.flatnonzero((rows > 0) & (rows < 7) & (columns > 0) & (columns < 7))
    for each in inner:
        seen = image[0, rows[each] - 1 : rows[each] + 2, columns[each] - 1 : columns[each] + 2]
        np.testing.assert_array_equal(patches[each], seen)


def test_samples_are_all_held_out_images(split, held_out):
    images, labels = samples(len(held_out) + 1)
    assert SAMPLES.stat().st_size < 30_000
    np.testing.assert_array_equal(labels, split.held_out_labels)
    for image, wanted in zip(images, held_out, strict=True):
        np.testing.assert_array_equal(image, wanted)
    lengths = {len(tokens) for tokens in (*held_out, *sequences(split.train_images))}
    assert lengths <= set(LENGTHS) and {min(lengths), max(lengths)} == {LENGTHS[0], LENGTHS[-1]}
