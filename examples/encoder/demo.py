"""Classify held-out digits of different lengths and compare every output with the integer reference.

    python -m examples.encoder.demo [--samples 12] [--preset base] [--backend model]

A model with a dynamic dimension is one model; for each length that comes up a kernel is compiled once. Exit code 1 if
any output differs from the reference.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import caesura
from caesura.lengths import DynamicModel
from examples.encoder import LENGTHS, MODEL, SAMPLES
from examples.encoder.reference import integer_logits
from examples.encoder.tokens import LEVELS, Tokens, tokens_of
from sim import BACKENDS_HELP, MODEL as FAST_MODEL

_SERVED = {"compiled": "compiled for it", "exact": "kernel was there", "file": "kernel from the cache folder"}


@dataclass
class Row:
    """One classified image."""

    label: int
    prediction: int
    tokens: int
    cycles: int
    utilisation: float
    served: str
    equal: bool  #: every logit equals the integer reference's, bit for bit


def samples(count: int) -> tuple[list[Tokens], NDArray[np.uint8]]:
    """The first `count` held-out images as sequences, and their labels."""
    with np.load(SAMPLES) as file:
        images = file["image"][:count].astype(np.float32) / LEVELS
        return [tokens_of(image) for image in images], file["label"][:count]


def classify(model: DynamicModel, images: Sequence[Tokens], labels: NDArray[np.uint8]) -> list[Row]:
    """Run every image on the device and compare with the reference."""
    rows = []
    for image, label, wanted in zip(images, labels, integer_logits(images), strict=True):
        outputs, stats = model.run(image[np.newaxis])
        (logits,) = outputs["logits"]
        assert model.last is not None
        served = _SERVED.get(model.last.how, f"{model.last.how}, {model.last.kernel_length} tokens")
        equal = bool(np.array_equal(logits, wanted))
        rows.append(
            Row(int(label), int(logits.argmax()), len(image), stats.cycles, stats.utilisation, served, equal)
        )  # fmt: skip
    return rows


def results_table(rows: list[Row]) -> Table:
    """The rows, for a terminal."""
    table = Table(title="held-out digits", title_justify="left", header_style="bold")
    for column in ("image", "label", "prediction", "tokens", "cycles", "MAC utilisation", "served", "equals reference"):
        table.add_column(column, justify="right")
    for number, row in enumerate(rows):
        right = "green" if row.prediction == row.label else "yellow"
        table.add_row(
            str(number),
            str(row.label),
            f"[{right}]{row.prediction}[/]",
            str(row.tokens),
            f"{row.cycles:,}",
            f"{row.utilisation:.1%}",
            row.served,
            "[green]yes[/]" if row.equal else "[bold red]NO[/]",
        )
    return table


def main() -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(description="classify handwritten digits, read as sequences, with an encoder")
    parser.add_argument("--samples", type=int, default=12, help="images to classify, at most 359")
    parser.add_argument("--preset", default="base", help="hardware parameters")
    parser.add_argument("--backend", default=FAST_MODEL, help=BACKENDS_HELP)
    options = parser.parse_args()
    console = Console()
    images, labels = samples(options.samples)
    lengths = sorted({len(image) for image in images})
    console.print(
        f"{MODEL.name}: {len(images)} images of {lengths[0]} to {lengths[-1]} tokens, {len(lengths)} lengths, "
        f"on {options.preset!r}, backend {options.backend}"
    )
    with (
        caesura.open(options.preset, options.backend) as device,
        caesura.dynamic(MODEL, device, LENGTHS, most_loaded=len(LENGTHS)) as model,
    ):
        start = time.monotonic()
        rows = classify(model, images, labels)
        seconds = time.monotonic() - start
        served = ", ".join(f"{_SERVED.get(how, how)} {count}" for how, count in model.served.items())
        cycles = device.bus.cycle
    console.print(results_table(rows))
    correct = sum(row.prediction == row.label for row in rows)
    equal = sum(row.equal for row in rows)
    console.print(
        f"{correct} of {len(rows)} correct ({correct / len(rows):.2%}); outputs equal the reference bit for bit in "
        f"{equal} of {len(rows)}; {served}; {cycles:,} cycles simulated in {seconds:.1f} s"
    )
    return 0 if equal == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
