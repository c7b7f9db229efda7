"""Classify held-out digits with the driver in C, on a simulated device.

    python -m examples.c_driver.demo [--samples 8] [--preset tiny] [--backend native]

Exit code 1 if an output differs from that of the driver in Python.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

import caesura
from examples.c_driver.binding import CDevice
from examples.c_driver.build import build
from examples.digits import MODEL, SAMPLES
from hw.image import flat
from sim import BACKENDS, DEFAULT_BACKEND


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(description="classify digits with the driver in C")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--backend", default=DEFAULT_BACKEND, choices=BACKENDS)
    options = parser.parse_args(arguments)
    image = caesura.compile(MODEL, preset=options.preset)
    with np.load(SAMPLES) as file:
        images, labels = file["input"][: options.samples], file["label"][: options.samples]
    file_bytes = flat(image)
    print(f"{MODEL.name} on {options.preset!r} ({options.backend}): {len(file_bytes):,} bytes in flat form")
    with tempfile.TemporaryDirectory() as folder, caesura.open(options.preset, backend=options.backend) as device:
        python = device.load(image)
        expected = [python.run(x[np.newaxis])[0]["logits"] for x in images]
        with caesura.open(options.preset, backend=options.backend) as other:
            model, equal, right = CDevice(build(Path(folder)), other.bus).load(file_bytes), 0, 0
            for x, label, wanted in zip(images, labels, expected, strict=True):
                (found,) = model({"image": x[np.newaxis]}).values()
                equal += bool(np.array_equal(found, wanted))
                right += int(found.argmax() == label)
            cycles = other.bus.cycle
    print(f"{right} of {len(images)} digits right, {equal} equal those of the Python driver; {cycles:,} cycles")
    return 0 if equal == len(images) else 1


if __name__ == "__main__":
    sys.exit(main())
