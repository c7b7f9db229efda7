"""Classify held-out digits on the compiled RTL and compare every output with onnxruntime.

    python -m examples.digits.demo [--samples 24] [--preset tiny] [--backend native]

Exit code 1 if any output differs from onnxruntime's integer kernels.
"""

import argparse
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import caesura
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from sim import BACKENDS_HELP, DEFAULT_BACKEND

ABOUT = (
    "Caesura is an open NPU that you can run: an accelerator in Amaranth, its compiler, driver and run time.\n"
    "Here a small network for handwritten digits is compiled for it and runs on a simulation of the hardware itself."
)


@dataclass
class Row:
    """One classified image."""

    label: int
    prediction: int
    cycles: int
    utilisation: float
    equal: bool  #: every logit equals onnxruntime's, bit for bit


def classify(model: caesura.Model, images: NDArray[np.float32], labels: NDArray[np.int64]) -> list[Row]:
    """Run every image on the device and compare with onnxruntime."""
    expected = reference_logits(MODEL, images)
    rows = []
    for image, label, wanted in zip(images, labels, expected, strict=True):
        outputs, stats = model.run(image[np.newaxis])
        (logits,) = outputs["logits"]
        equal = bool(np.array_equal(logits, wanted))
        rows.append(Row(int(label), int(logits.argmax()), stats.cycles, stats.utilisation, equal))
    return rows


def results_table(rows: list[Row]) -> Table:
    """The rows, for a terminal."""
    table = Table(title="held-out digits", title_justify="left", header_style="bold")
    for column in ("image", "label", "prediction", "cycles", "MAC utilisation", "equals onnxruntime"):
        table.add_column(column, justify="right")
    for number, row in enumerate(rows):
        right = "green" if row.prediction == row.label else "yellow"
        table.add_row(
            str(number),
            str(row.label),
            f"[{right}]{row.prediction}[/]",
            f"{row.cycles:,}",
            f"{row.utilisation:.1%}",
            "[green]yes[/]" if row.equal else "[bold red]NO[/]",
        )
    return table


def next_command() -> str:
    """Return what to type next, as it is typed here: ``caesura`` is not always on the path."""
    command = "caesura" if shutil.which("caesura") else _near(Path(sys.executable).with_name("caesura"))
    return f"{command} run {_near(MODEL)} --input {_near(SAMPLES)} --check --profile"


def _near(path: Path) -> str:
    """Return ``path`` from the working folder where it lies below that."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def main() -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(description="classify handwritten digits on the RTL")
    parser.add_argument("--samples", type=int, default=24, help="images to classify, at most 64")
    parser.add_argument("--preset", default="tiny", help="hardware parameters")
    parser.add_argument("--backend", default=DEFAULT_BACKEND, help=BACKENDS_HELP)
    options = parser.parse_args()
    console = Console()
    samples = np.load(SAMPLES)
    images, labels = samples["input"][: options.samples], samples["label"][: options.samples]

    console.print(ABOUT, highlight=False)
    image = caesura.compile(MODEL, options.preset)
    macs = sum(layer.macs for layer in image.meta.layers)
    console.print(
        f"{MODEL.name}: {len(image.meta.layers)} layers, {macs:,} MACs, "
        f"on {options.preset!r} ({image.params.macs} MACs per cycle), backend {options.backend}"
    )
    with caesura.open(options.preset, options.backend) as device:
        start = time.monotonic()
        rows = classify(device.load(image), images, labels)
        seconds = time.monotonic() - start
        cycles = device.bus.cycle
    console.print(results_table(rows))
    correct = sum(row.prediction == row.label for row in rows)
    equal = sum(row.equal for row in rows)
    console.print(
        f"{correct} of {len(rows)} correct; outputs equal onnxruntime's integer kernels bit for bit in "
        f"{equal} of {len(rows)}; {cycles:,} cycles simulated in {seconds:.1f} s"
    )
    console.print(f"Next, where the cycles of each layer went:\n    {next_command()}", highlight=False, soft_wrap=True)
    return 0 if equal == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
