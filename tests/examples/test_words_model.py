"""The committed decoder: its interface, what it writes, and how well it expects text that it was not trained on."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from examples.words import CONTEXT, MODEL, MODELS, SAMPLES
from examples.words.text import Stepper, greedy, held_out, perplexity
from examples.words.tokens import SIZE, encode
from tests.support.sampled import sampled

LAYERS, KEY_HEADS, HEAD = 4, 2, 32
STATES = [f"{kind}_{layer}" for layer in range(LAYERS) for kind in ("key", "value")]
MEASURED = 1025  #: tokens of the held-out text
MOST_PERPLEXITY = 33.0
PROMPT = "The finally clause"  #: each token leads by more than two steps of 8 bits
CONTINUATION = ' is executed.\n\nThe "try" statement\n\nThe "try" statement is executed in the "try" statement'
TOKENS = 28


@pytest.fixture(scope="module")
def model():
    return onnx.load(MODEL)


def shapes(values):
    return {
        value.name: [dimension.dim_value or dimension.dim_param for dimension in value.type.tensor_type.shape.dim]
        for value in values
    }


def test_interface(model):
    """A step model: one token, its position, and a past for each present."""
    assert shapes(model.graph.input) == {"ids": [1, 1], "position": [1, 1]} | {
        f"past_{state}": [1, KEY_HEADS, "past", HEAD] for state in STATES
    }
    results = shapes(model.graph.output)
    assert results.pop("logits") == [1, 1, SIZE]
    assert list(results) == [f"present_{state}" for state in STATES]
    makers = {node.output[0]: node for node in model.graph.node}
    assert all(makers[name].op_type == "DequantizeLinear" for name in results)


def test_model_is_small_and_valid(model):
    assert MODEL.stat().st_size < 2_000_000 and SAMPLES.stat().st_size < 30_000
    onnx.checker.check_model(model, full_check=True)
    assert not any(node.metadata_props for node in model.graph.node)


def test_states_are_kept_exactly(model):
    """A present is the past and a row more, in steps of its scale."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    scales = {node.output[0]: float(constants[node.input[1]]) for node in model.graph.node
              if node.op_type == "DequantizeLinear" and node.output[0].startswith("present_")}  # fmt: skip
    stepper = Stepper(MODEL)
    before = stepper.past
    for token in encode(PROMPT):
        stepper.step(token)
        for name, value in stepper.past.items():
            np.testing.assert_array_equal(value[:, :, :-1], before[name])
            steps = value / scales[name.replace("past", "present", 1)]
            np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3)
        before = stepper.past
    assert {value.shape for value in before.values()} == {(1, KEY_HEADS, len(encode(PROMPT)), HEAD)}


def test_text_that_it_writes():
    assert greedy(MODEL, PROMPT, steps=TOKENS) == CONTINUATION


@pytest.mark.parametrize(("weights", "most"), sampled([("int4", MOST_PERPLEXITY + 1), ("int8", MOST_PERPLEXITY)], 1))
def test_perplexity_of_held_out_text(weights, most):
    assert perplexity(MODELS[weights], held_out()[:MEASURED]) < most


def test_int4_is_for_products():
    """Its matrices are int4 and nothing else is; the file is small, as they are packed."""
    four = onnx.load(MODELS["int4"])
    packed = [tensor for tensor in four.graph.initializer if tensor.data_type == onnx.TensorProto.INT4 and tensor.dims]
    assert sum(np.prod(tensor.dims) for tensor in packed if len(tensor.dims) == 2) == 917_504
    assert MODELS["int4"].stat().st_size < 1_000_000
    onnx.checker.check_model(four, full_check=True)


def test_context_is_all_that_it_knows():
    stepper = Stepper(MODEL)
    for token in held_out()[:CONTEXT]:
        stepper.step(int(token))
    with pytest.raises(ValueError, match="token 257 of a text; the model knows 256 positions"):
        stepper.step(0)
    with pytest.raises(ValueError, match="prompt of 0 tokens; it must have 1 to 256"):
        greedy(MODEL, "", steps=1)
