"""What onnxruntime makes of a model of digits: the reference for accuracy and for the hardware's results."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray


def reference_logits(model: Path, images: Iterable[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the scores [N, 10] of N images, each without its batch dimension, by onnxruntime's integer kernels."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")  # or x86-64 computes int8 QDQ in float
    options.intra_op_num_threads = 1
    run = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    name = run.get_inputs()[0].name
    return np.concatenate([run.run(None, {name: image[np.newaxis]})[0] for image in images])


def accuracy(model: Path, images: Iterable[NDArray[np.float32]], labels: NDArray[np.int64]) -> float:
    """Return the share of images, 0..1, whose largest score is that of their label."""
    return float((reference_logits(model, images).argmax(axis=1) == labels).mean())
