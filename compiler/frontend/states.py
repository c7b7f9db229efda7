"""How states lie in device memory, and who of a model has to do with them.

ONNX has an input for the past, and an output for what `Concat` makes of it and of what is new. On the accelerator both
are one tensor that stays in device memory, with a row to spare: what is new is written behind the rows that are there.
"""

from compiler.frontend.source import OnnxSource
from compiler.frontend.values import Shape, TensorLayout
from compiler.states import ModelState


def states_by_name(source: OnnxSource) -> dict[str, ModelState]:
    """Return the states of a model by the names of their inputs, of the results of their Concats, and of their
    outputs: those of one sequence, whose length is a dynamic dimension. Without such a dimension a Concat is as any
    other."""
    found: dict[str, ModelState] = {}
    for state in source.states:
        if state.label and state.axis and source.signatures[state.past].shape[0] == 1:
            found |= {state.past: state, state.node: state, state.present: state}
    return found


def layout_of(shape: Shape, axis: int) -> TensorLayout:
    """Return how a state of ``shape`` lies in memory: rows along ``axis`` one behind the other."""
    return TensorLayout(shape, (0, axis, *(other for other in range(1, len(shape)) if other != axis)))
