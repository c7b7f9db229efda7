"""What the device must compute, bit for bit: the compiler's reference of the integer operators, in NumPy.

onnxruntime's logits are at most one step of 8 bits apart from these where it computes the model node by node, as it is
written, and a few steps where it fuses softmax and normalisations with their neighbours.
"""

import functools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from compiler import DynamicDimension, Graph, import_model, reference
from examples.encoder import MODEL
from examples.encoder.export import INPUT, OUTPUT
from examples.encoder.tokens import Tokens


def integer_logits(images: Iterable[Tokens]) -> NDArray[np.float32]:
    """Return the scores [N, 10] of N sequences [L, 25], each of its own length."""
    results = [reference.run(_graph(len(image)), {INPUT: image[np.newaxis]})[OUTPUT] for image in images]
    return np.concatenate(results)


@functools.lru_cache
def _graph(length: int) -> Graph:
    return import_model(DynamicDimension.of(MODEL).fixed(length), name=MODEL.stem)
