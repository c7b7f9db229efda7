"""A small trained network on handwritten digits: the first model to run."""

from pathlib import Path

MODEL = Path(__file__).parent / "digits.onnx"
SAMPLES = Path(__file__).parent / "digits_samples.npz"
