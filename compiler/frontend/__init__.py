"""ONNX models as the compiler's IR."""

from pathlib import Path

import onnx

from compiler.frontend.filled_rows import bound_keys
from compiler.frontend.importer import imported
from compiler.frontend.load import Sizes, load
from compiler.frontend.problems import NodeProblem, OpenDimension, UnsupportedModel
from compiler.frontend.sequences import side_by_side
from compiler.ir import Graph
from compiler.verify import verify

__all__ = ["NodeProblem", "OpenDimension", "UnsupportedModel", "import_model"]


def import_model(
    path_or_proto: str | Path | onnx.ModelProto,
    *,
    fallback: bool = False,
    name: str | None = None,
    batch: int = 1,
    sizes: Sizes | None = None,
    sequences: int = 1,
    last_row: bool = False,
) -> Graph:
    """Return the IR of a quantised ONNX model (QDQ or QOperator form, operator sets 10 and later).

    ``sizes`` fixes dynamic input dimensions by name; a dynamic batch is ``batch`` otherwise. Nodes of the float ends
    (:mod:`compiler.frontend.float_ends`) that the accelerator cannot run become host operators; with ``fallback``, all
    others do, too. ``sequences``: of which a step model computes a step each, see
    :mod:`compiler.frontend.sequences`. ``last_row``: of an attention, for as many tokens as an input says, see
    :mod:`compiler.frontend.filled_rows`. Raises :class:`CompileError` on a file that cannot be read or a model that is
    invalid, :class:`OpenDimension` on an input without a size, and :class:`UnsupportedModel` listing
    every node that cannot run.
    """
    graph = imported(load(path_or_proto, name, batch, sizes), fallback)
    if sequences != 1:
        graph = side_by_side(graph, sequences)
    if last_row:
        bound_keys(graph)
    verify(graph)
    return graph
