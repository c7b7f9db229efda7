"""A small decoder that writes about Python: trained on the help texts that ship with it, one token a step."""

from pathlib import Path

MODELS = {weights: Path(__file__).parent / f"words_{weights}.onnx" for weights in ("int8", "int4")}  #: by weights
MODEL = MODELS["int8"]
SAMPLES = Path(__file__).parent / "words_samples.npz"
CONTEXT = 256  #: tokens that the model knows positions for
