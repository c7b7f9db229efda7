"""A small transformer encoder on handwritten digits, read as sequences of as many tokens as they have dark pixels."""

from pathlib import Path

MODEL = Path(__file__).parent / "encoder.onnx"
SAMPLES = Path(__file__).parent / "encoder_samples.npz"
LENGTHS = range(16, 43)  #: tokens of the images of the data set, held-out ones included
