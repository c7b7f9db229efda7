"""Step models token by token: the past of each step is the present of the one before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx

from compiler.states import states_of
from sim.host import session

Feed = Mapping[str, npt.NDArray]
Outputs = dict[str, npt.NDArray]


def stepped(model: onnx.ModelProto, sequence: Iterable[Feed]) -> Iterator[tuple[Feed, Outputs]]:
    """Yield the inputs and the outputs of each step of a model whose states are open, float or quantised, over a
    sequence: the other inputs of its steps. It begins with no past."""
    run, found = session(model), states_of(model).found
    axes = {state.past: state.axis for state in found}
    past = {
        value.name: np.zeros(
            [0 if axis == axes[value.name] else max(dim.dim_value, 1) for axis, dim in enumerate(dims)], np.float32
        )
        for value in model.graph.input if value.name in axes for dims in [value.type.tensor_type.shape.dim]
    }  # fmt: skip
    names = [value.name for value in run.get_outputs()]
    for given in sequence:
        feed = {**given, **past}
        outputs = dict(zip(names, run.run(names, feed), strict=True))
        yield feed, outputs
        past = {state.past: outputs[state.present] for state in found}


class StepFeeds:
    """All inputs of each step of a float model over sequences, computed anew each time one goes through them."""

    def __init__(self, model: onnx.ModelProto, sequences: Sequence[Sequence[Feed]]) -> None:
        self._model, self._sequences = model, sequences

    def __iter__(self) -> Iterator[Feed]:
        for sequence in self._sequences:
            yield from (feed for feed, _ in stepped(self._model, sequence))

    def __len__(self) -> int:
        return sum(map(len, self._sequences))
