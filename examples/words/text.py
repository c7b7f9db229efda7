"""What onnxruntime makes of a step model: the text it writes, and how well it expects one that is there.

    python -m examples.words.text "The finally clause" [--steps 80] [--model words_int8.onnx]
    python -m examples.words.text --perplexity [--model float.onnx]

A model is computed node by node as it is written, which does not depend on the processor.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from examples.words import CONTEXT, MODEL, SAMPLES
from examples.words.tokens import decode, encode
from sim.host import session


class Stepper:
    """Runs a step model one token at a time, and keeps its past."""

    def __init__(self, model: Path) -> None:
        self._session = session(onnx.load(model), as_written=True)
        self._outputs = [output.name for output in self._session.get_outputs()]
        self.past: dict[str, NDArray[np.float32]] = {}
        self.restart()

    def restart(self) -> None:
        """Forget the past."""
        self.position = 0
        for value in self._session.get_inputs():
            if value.name.startswith("past_"):
                shape = [size if isinstance(size, int) else 0 for size in value.shape]
                self.past[value.name] = np.zeros(shape, np.float32)

    def step(self, token: int) -> NDArray[np.float32]:
        """Return the scores [vocabulary] of the token that follows. Raises ValueError when the context is full."""
        if self.position == CONTEXT:
            raise ValueError(f"token {CONTEXT + 1} of a text; the model knows {CONTEXT} positions")
        feed = {"ids": np.array([[token]]), "position": np.array([[self.position]]), **self.past}
        results = dict(zip(self._outputs, self._session.run(None, feed), strict=True))
        self.past = {name: results[name.replace("past", "present", 1)] for name in self.past}
        self.position += 1
        return results["logits"].reshape(-1)


def greedy(model: Path, prompt: str, steps: int) -> str:
    """Return what follows a prompt when the most likely token is taken each time, until the context is full."""
    tokens, count = steps_to_write(prompt, steps)
    stepper = Stepper(model)
    for token in tokens:
        scores = stepper.step(token)
    written = [int(scores.argmax())]
    while len(written) < count:
        written.append(int(stepper.step(written[-1]).argmax()))
    return decode(written)


def steps_to_write(prompt: str, steps: int) -> tuple[list[int], int]:
    """Return the tokens of a prompt, and how many of ``steps`` tokens fit into the context behind it, at least one.
    Raises ValueError for a prompt that is empty or too long."""
    tokens = encode(prompt)
    if not 0 < len(tokens) <= CONTEXT:
        raise ValueError(f"a prompt of {len(tokens)} tokens; it must have 1 to {CONTEXT}")
    return tokens, max(1, min(steps, CONTEXT - len(tokens) + 1))


def perplexity(model: Path, tokens: Sequence[int] | NDArray[np.integer]) -> float:
    """Return the perplexity of a text, in windows of the context that do not overlap."""
    stepper, losses = Stepper(model), list[float]()
    for place in range(len(tokens) - 1):
        if place % CONTEXT == 0:
            stepper.restart()
        scores = stepper.step(int(tokens[place])).astype(np.float64)
        largest = scores.max()
        losses.append(largest + np.log(np.exp(scores - largest).sum()) - scores[tokens[place + 1]])
    return float(np.exp(np.mean(losses)))


def held_out() -> NDArray[np.uint16]:
    """The tokens of the text that was held out of training."""
    with np.load(SAMPLES) as file:
        return file["held_out"]


def main() -> None:
    """Write on from a prompt, or measure perplexity."""
    parser = argparse.ArgumentParser(description="what onnxruntime makes of the decoder")
    parser.add_argument("prompt", nargs="?", default="The finally clause")
    parser.add_argument("--steps", type=int, default=80, help="tokens to write")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--perplexity", action="store_true", help="of the text that was held out, instead")
    options = parser.parse_args()
    if options.perplexity:
        tokens = held_out()
        print(f"perplexity of {len(tokens) - 1} held-out tokens: {perplexity(options.model, tokens):.3f}")
    else:
        print(options.prompt + greedy(options.model, options.prompt, options.steps))


if __name__ == "__main__":
    main()
