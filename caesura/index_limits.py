"""Tells how large the indices may be that an input of an image holds, by which jobs or the CPU look up tables."""

from collections.abc import Iterator

import numpy as np
import onnx

from hw.image import Image

#: Operators whose results hold elements of their first input, and nothing else.
_SAME_VALUES = (
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Identity",
    "Cast",
    "Expand",
    "Slice",
    "Split",
)


def index_limit(image: Image, tensor: str) -> int | None:
    """Return how many rows the smallest table has that is looked up by elements of input ``tensor``; None if none is by
    them as they are."""
    found = [rows for model in image.host_models for rows in _tables(onnx.load_from_string(model).graph, tensor)]
    names = {port.name for port in image.meta.inputs if port.tensor == tensor}
    found += [info.high + 1 for info in image.meta.parameters if info.name in names]
    return min(found, default=None)


def _tables(graph: onnx.GraphProto, tensor: str) -> Iterator[int]:
    constants = {each.name: list(each.dims) for each in graph.initializer}
    same = {tensor}
    for node in graph.node:
        if node.op_type in _SAME_VALUES and node.input[0] in same:
            same.update(node.output)
        elif node.op_type in ("Gather", "GatherElements", "GatherND") and node.input[1] in same:
            sizes = constants.get(node.input[0])
            axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
            if sizes:
                yield int(np.min(sizes)) if node.op_type == "GatherND" else sizes[axis]
