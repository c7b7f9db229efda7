"""Whole networks for tests. Only ``digits`` is part of the repository; CAESURA_MODELS names where the others are."""

import os
from pathlib import Path

import pytest

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"


def network(name: str) -> Path:
    """The ONNX file of ``name``; the test that asks is skipped where there is none."""
    path = DIGITS if name == "digits" else Path(os.environ.get("CAESURA_MODELS", "models")) / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"no {path}: set CAESURA_MODELS to the folder of the models")
    return path


def samples(name: str) -> Path:
    """Recorded inputs of a network, beside it."""
    return network(name).with_name(f"{name}_samples.npz")
