"""Train the encoder and write `encoder.onnx` and `encoder_samples.npz`.

    python -m examples.encoder.train

The schedule below and the sizes of the network were chosen on a fifth of the training images that the others did not
train; the held-out images only measure the result.
"""

import argparse
import logging
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from examples.digits.data import Split, load_split
from examples.digits.evaluate import accuracy
from examples.encoder import MODEL, SAMPLES, network
from examples.encoder.export import INPUT, float_model
from examples.encoder.tokens import LEVELS, SIDE, Tokens, sequences
from examples.training.adam import Adam, cosine
from examples.training.quantise import quantise

TRAIN_SEED = 1
EPOCHS = 80
BATCH = 32
LEARNING_RATE = 1e-3
WARM_UP = 0.05
MOST_DROPPED = 0.3  #: of a sequence's tokens
MIN_FLOAT_ACCURACY = 0.97
MIN_INT8_ACCURACY = 0.96


def train(images: Sequence[Tokens], labels: NDArray[np.int64], epochs: int = EPOCHS) -> network.Parameters:
    """Minimise cross-entropy with Adam on sequences [L, 25] and their labels [N].

    A batch has sequences of one length, so that none is padded. Each is moved by a pixel now and then, and loses some
    of its tokens.
    """
    rng = np.random.default_rng(TRAIN_SEED)
    parameters = network.initial_parameters(rng)
    optimiser = Adam(parameters, weight_decay=0)
    for epoch in range(epochs):
        losses = []
        groups = batches([len(image) for image in images], rng)
        for number, members in enumerate(groups):
            tokens = thinned(moved(np.stack([images[member] for member in members]), rng), rng)
            loss, gradient = network.loss_and_gradient(parameters, tokens, labels[members])
            losses.append(loss)
            share = np.sqrt(len(members) / BATCH)  # a small batch has a noisy gradient
            progress = (epoch + number / len(groups)) / epochs
            optimiser.step(gradient, LEARNING_RATE * share * cosine(progress, WARM_UP))
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3}: loss {np.mean(losses):.4f}", flush=True)
    return parameters


def batches(lengths: Sequence[int], rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Indices of all sequences in random batches of at most `BATCH`, each of one length."""
    members = defaultdict(list)
    for index in rng.permutation(len(lengths)):
        members[lengths[index]].append(index)
    cut = [np.array(same[i : i + BATCH]) for same in members.values() for i in range(0, len(same), BATCH)]
    return [cut[index] for index in rng.permutation(len(cut))]


def moved(tokens: Tokens, rng: np.random.Generator) -> Tokens:
    """Sequences [N, L, 25], each moved by -1, 0 or 1 rows and columns, but not over the edge of the image."""
    result = tokens.copy()
    for axis in range(2):
        places = result[:, :, axis * SIDE : (axis + 1) * SIDE]
        used = places.max(axis=1) > 0
        steps = rng.integers(-1, 2, len(tokens))
        back, on = (steps == -1) & ~used[:, 0], (steps == 1) & ~used[:, -1]
        places[back] = np.roll(places[back], -1, axis=2)
        places[on] = np.roll(places[on], 1, axis=2)
    return result


def thinned(tokens: Tokens, rng: np.random.Generator) -> Tokens:
    """Sequences [N, L, 25] without some of their tokens, equally many of each and at most `MOST_DROPPED` of L."""
    count, length, _ = tokens.shape
    kept = length - rng.integers(int(MOST_DROPPED * length) + 1)
    orders = rng.permuted(np.tile(np.arange(length), (count, 1)), axis=1)
    return np.take_along_axis(tokens, np.sort(orders[:, :kept], axis=1)[:, :, np.newaxis], axis=1)


def main() -> None:
    """Train, export, quantise, measure; refuse to write a model below the accuracy floors."""
    parser = argparse.ArgumentParser(description="train the encoder")
    parser.add_argument("--output", type=Path, default=MODEL.parent, help="folder for the results (default: here)")
    output: Path = parser.parse_args().output
    logging.getLogger().setLevel(logging.ERROR)  # hides onnxruntime's advice to pre-process

    split = load_split()
    images, held_out = sequences(split.train_images), sequences(split.held_out_images)
    parameters = train(images, split.train_labels)
    with tempfile.TemporaryDirectory() as folder:
        float_path, int8_path = Path(folder) / "float.onnx", Path(folder) / MODEL.name
        onnx.save(float_model(parameters), float_path)
        quantise(float_path, int8_path, ({INPUT: image[np.newaxis]} for image in images))
        float_accuracy = accuracy(float_path, held_out, split.held_out_labels)
        int8_accuracy = accuracy(int8_path, held_out, split.held_out_labels)
        print(f"{len(held_out)} held-out images: float {float_accuracy:.2%}, int8 {int8_accuracy:.2%}")
        if float_accuracy < MIN_FLOAT_ACCURACY or int8_accuracy < MIN_INT8_ACCURACY:
            raise SystemExit(
                "error: accuracy is below the floor "
                f"(float {MIN_FLOAT_ACCURACY:.0%}, int8 {MIN_INT8_ACCURACY:.0%}); nothing written"
            )
        output.mkdir(parents=True, exist_ok=True)
        (output / MODEL.name).write_bytes(int8_path.read_bytes())
    write_samples(split, output / SAMPLES.name)
    print(f"wrote {output / MODEL.name} and {output / SAMPLES.name}")


def write_samples(split: Split, path: Path) -> None:
    """All held-out images, in the data set's levels of darkness 0..16, with their labels."""
    pixels = np.rint(split.held_out_images * LEVELS).astype(np.uint8)
    np.savez_compressed(path, image=pixels, label=split.held_out_labels.astype(np.uint8))


if __name__ == "__main__":
    main()
