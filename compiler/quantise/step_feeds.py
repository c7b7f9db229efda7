"""Step models token by token: the past of each step is the present of the one before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx

from compiler.states import states_of
from sim.host import session

Feed = Mapping[str, npt.NDArray]
Outputs = dict[str, npt.NDArray]


class StepModel:
    """A model whose states are open, float or quantised, as onnxruntime runs it. ``as_written``: see
    :func:`sim.host.session`."""

    def __init__(self, model: onnx.ModelProto, *, as_written: bool = False) -> None:
        self._run, self._states = session(model, as_written=as_written), states_of(model).found
        self._names = [value.name for value in self._run.get_outputs()]
        shapes = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
        self._empty = {
            state.past: np.zeros(
                [0 if axis == state.axis else max(dim.dim_value, 1) for axis, dim in enumerate(shapes[state.past])],
                np.float32,
            )
            for state in self._states
        }

    def steps(self, sequence: Iterable[Feed]) -> Iterator[tuple[Feed, Outputs]]:
        """Yield the inputs and the outputs of each step over a sequence, which holds the other inputs of its steps. It
        begins with no past."""
        past: Feed = self._empty
        for given in sequence:
            feed = {**given, **past}
            outputs = dict(zip(self._names, self._run.run(self._names, feed), strict=True))
            yield feed, outputs
            past = {state.past: outputs[state.present] for state in self._states}


class StepFeeds:
    """All inputs of each step of a float model over sequences, computed anew each time one goes through them."""

    def __init__(self, model: onnx.ModelProto, sequences: Sequence[Sequence[Feed]]) -> None:
        self._model, self._sequences = StepModel(model), sequences

    def __iter__(self) -> Iterator[Feed]:
        for sequence in self._sequences:
            yield from (feed for feed, _ in self._model.steps(sequence))

    def __len__(self) -> int:
        return sum(map(len, self._sequences))
