"""Write the trained decoder as a step model: one token, with its past as inputs.

    python -m examples.words.export weights.pt float.onnx

Inputs are `ids` and `position` int64 [1, 1], and for each layer `past_key_i` and `past_value_i` float32
[1, key heads, past, head size], where `past` is dynamic. Outputs are `logits` float32 [1, 1, vocabulary], and
`present_key_i` and `present_value_i`, which have one row more. The graph is what `torch.onnx.export` makes of it.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from examples.words import CONTEXT, network, tokens
from examples.words.network import Decoder, Step

OPSET = 18
STATES = [f"{kind}_{layer}" for layer in range(network.LAYERS) for kind in ("key", "value")]
CHECKED = 30  #: steps in which onnxruntime must agree with PyTorch


def export(decoder: Decoder, path: Path, opset: int = OPSET) -> None:
    """Write the step model of a decoder, and check it."""
    step = Step(decoder).eval()
    past = [torch.zeros(1, network.KEY_HEADS, 3, network.HEAD) for _ in STATES]
    dynamic = torch.export.Dim("past", min=0, max=CONTEXT - 1)
    program = torch.onnx.export(
        step,
        (torch.tensor([[1]]), torch.tensor([[3]]), *past),
        input_names=["ids", "position", *(f"past_{state}" for state in STATES)],
        output_names=["logits", *(f"present_{state}" for state in STATES)],
        dynamic_shapes=({}, {}, tuple({2: dynamic} for _ in STATES)),
        opset_version=opset,
        dynamo=True,
    )
    assert program is not None
    model = program.model_proto
    for node in model.graph.node:
        del node.metadata_props[:]  # paths of the machine that exports
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    check(step, path)


def check(step: Step, path: Path) -> None:
    """Compare a file with the network over some steps. Raises AssertionError where they differ."""
    session = onnxruntime.InferenceSession(path)
    shape = (1, network.KEY_HEADS, 0, network.HEAD)
    past, states = [torch.zeros(shape) for _ in STATES], [np.zeros(shape, np.float32) for _ in STATES]
    text = torch.from_numpy(np.random.default_rng(0).integers(0, tokens.SIZE, CHECKED))
    with torch.no_grad():
        whole = step.decoder(text[None])
    for place, token in enumerate(text):
        ids, position = token.reshape(1, 1), torch.tensor([[place]])
        with torch.no_grad():
            wanted, *past = step(ids, position, *past)
        feed = {f"past_{state}": value for state, value in zip(STATES, states, strict=True)}
        logits, *states = session.run(None, {"ids": ids.numpy(), "position": position.numpy(), **feed})
        for result, expected in zip((logits, *states), (wanted, *past), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(logits[0, 0], whole[0, place], rtol=1e-3, atol=1e-4)


def main() -> None:
    """Export weights."""
    parser = argparse.ArgumentParser(description="write the decoder as a step model")
    parser.add_argument("weights", type=Path, help="what train.py wrote")
    parser.add_argument("output", type=Path, help="the ONNX file")
    options = parser.parse_args()
    decoder = Decoder()
    decoder.load_state_dict(torch.load(options.weights))
    export(decoder, options.output)


if __name__ == "__main__":
    main()
