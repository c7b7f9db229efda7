"""Train the digits network and write `digits.onnx` and `digits_samples.npz`.

    python -m examples.digits.train

The schedule below and the channel counts were chosen by cross-validation within the training images; the
held-out images only measure the result.
"""

import argparse
import logging
import tempfile
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from examples.digits import MODEL, SAMPLES, network
from examples.digits.data import load_split
from examples.digits.evaluate import accuracy
from examples.digits.export import INPUT, float_model
from examples.training.adam import Adam, cosine
from examples.training.quantise import quantise

TRAIN_SEED = 1
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-4
SAMPLE_COUNT = 64
MIN_FLOAT_ACCURACY = 0.97
MIN_INT8_ACCURACY = 0.96


def train(images: NDArray[np.float32], labels: NDArray[np.int64], epochs: int = EPOCHS) -> network.Parameters:
    """Minimise cross-entropy with Adam and a cosine schedule, on images [N, 1, 8, 8] and labels [N]."""
    rng = np.random.default_rng(TRAIN_SEED)
    parameters = network.initial_parameters(rng)
    optimiser = Adam(parameters, WEIGHT_DECAY)
    steps_per_epoch = len(images) // BATCH
    total_steps = epochs * steps_per_epoch
    step = 0
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        losses = []
        for batch in np.split(order[: steps_per_epoch * BATCH], steps_per_epoch):
            loss, gradient = network.loss_and_gradient(parameters, images[batch], labels[batch])
            losses.append(loss)
            optimiser.step(gradient, LEARNING_RATE * cosine(step / total_steps))
            step += 1
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3}: loss {np.mean(losses):.4f}")
    return parameters


def main() -> None:
    """Train, export, quantise, measure; refuse to write a model below the accuracy floors."""
    parser = argparse.ArgumentParser(description="train the digits network")
    parser.add_argument("--output", type=Path, default=MODEL.parent, help="folder for the results (default: here)")
    output: Path = parser.parse_args().output
    logging.getLogger().setLevel(logging.ERROR)  # hides onnxruntime's advice to pre-process

    split = load_split()
    parameters = train(split.train_images, split.train_labels)
    with tempfile.TemporaryDirectory() as folder:
        float_path, int8_path = Path(folder) / "float.onnx", Path(folder) / MODEL.name
        onnx.save(float_model(parameters), float_path)
        quantise(float_path, int8_path, ({INPUT: image[np.newaxis]} for image in split.train_images))
        float_accuracy = accuracy(float_path, split.held_out_images, split.held_out_labels)
        int8_accuracy = accuracy(int8_path, split.held_out_images, split.held_out_labels)
        count = len(split.held_out_labels)
        print(f"{count} held-out images: float {float_accuracy:.2%}, int8 {int8_accuracy:.2%}")
        if float_accuracy < MIN_FLOAT_ACCURACY or int8_accuracy < MIN_INT8_ACCURACY:
            raise SystemExit(
                "error: accuracy is below the floor "
                f"(float {MIN_FLOAT_ACCURACY:.0%}, int8 {MIN_INT8_ACCURACY:.0%}); nothing written"
            )
        output.mkdir(parents=True, exist_ok=True)
        (output / MODEL.name).write_bytes(int8_path.read_bytes())
    np.savez_compressed(
        output / SAMPLES.name,
        input=split.held_out_images[:SAMPLE_COUNT],
        label=split.held_out_labels[:SAMPLE_COUNT],
    )
    print(f"wrote {output / MODEL.name} and {output / SAMPLES.name}")


if __name__ == "__main__":
    main()
