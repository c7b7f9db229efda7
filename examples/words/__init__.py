"""A small decoder that writes about Python: trained on the help texts that ship with it, one token a step."""

from pathlib import Path

MODEL = Path(__file__).parent / "words_int8.onnx"
SAMPLES = Path(__file__).parent / "words_samples.npz"
CONTEXT = 256  #: tokens that the model knows positions for
