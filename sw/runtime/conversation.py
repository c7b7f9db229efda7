"""A model that goes on where its last inference ended: what it keeps stays in device memory, as long as it is used."""

from collections.abc import Mapping, Sequence
from types import TracebackType

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Segment
from hw.image import Image, ParameterInfo, PortInfo
from sw.driver import Device, DriverError, LoadedModel
from sw.runtime.model_data import Arrays, InputError, by_name
from sw.runtime.session import Session
from sw.runtime.stats import RunStats

_POSITION = "position"  #: in the name of an input: it is given how many inferences came before


def numbers_given(
    ports: Sequence[PortInfo], inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike], filled: int
) -> dict[str, npt.ArrayLike]:
    """Return what is given for each of ``ports``, by name: a whole number for one of a single element may stand alone,
    and the position is known, as ``filled`` steps came before."""
    given = by_name([port.name for port in ports], inputs)
    for port in ports:
        single = np.prod(port.shape) == 1
        if port.name not in given and counts_steps(port):
            given[port.name] = filled
        if port.name in given and single and np.ndim(given[port.name]) == 0:
            given[port.name] = np.full(port.shape, given[port.name], port.dtype)
    return given


def step_ports(image: Image) -> tuple[list[PortInfo], list[PortInfo]]:
    """Return the inputs and outputs of a step of a model that keeps a state: all but the state. Both are empty for one
    that keeps nothing."""
    meta = image.meta
    held = {tensor.name for tensor in meta.tensors if tensor.segment == Segment.SCRATCH}
    if not held or not _lengths(image):
        return [], []
    return [p for p in meta.inputs if p.tensor not in held], [p for p in meta.outputs if p.tensor not in held]


def counts_steps(port: PortInfo) -> bool:
    """Return whether an input of a step is known: how many came before."""
    return _POSITION in port.name and np.prod(port.shape) == 1


def most_steps(image: Image) -> int:
    """Return how many steps the memory of a conversation holds."""
    return min(_lengths(image)) + 1


def _lengths(image: Image) -> list[int]:
    """Return the most rows of each state."""
    inputs = {port.name for port in image.meta.inputs}
    return [info.high for info in image.meta.parameters if info.name not in inputs]


class Conversation(Session):
    """Runs inferences of one model, a *step* each, that share a state: keys and values of all tokens so far, say. It
    has memory of its own in the device, which :meth:`close` clears and gives back. ``filled``: steps so far.

    Several conversations of one model may take turns, step by step. Raises :class:`InputError` for a model without a
    state, :class:`DriverError` if DRAM is full.
    """

    def __init__(self, device: Device, model: LoadedModel) -> None:
        super().__init__(device, model)
        self._inputs, self._outputs = step_ports(model.image)
        if not self._inputs:
            raise InputError(
                f"model {model.name!r} keeps nothing from one inference to the next: it has no input that comes back "
                "as an output with one row more"
            )
        self.longest = most_steps(model.image)  #: steps that its memory holds
        self.filled = 0
        self.state = device.new_state(model)

    @property
    def inputs(self) -> list[PortInfo]:
        """Return what a step is given: all inputs but the state."""
        return self._inputs

    @property
    def outputs(self) -> list[PortInfo]:
        """Return what a step gives: all outputs but the state."""
        return self._outputs

    def rows(self, info: ParameterInfo) -> int:
        """Return how many rows of the state a step finds filled."""
        return self.filled

    def store(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> None:
        """Convert and write the inputs of a step, as :meth:`Session.store` does."""
        if self.state is None:
            raise DriverError(f"a conversation of model {self.model.name!r} was closed: begin another")
        if self.filled >= self.longest:
            raise InputError(
                f"model {self.model.name!r}: {self.filled} steps fill its state; compile it for a longer one"
            )
        super().store(inputs)

    def step(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> tuple[Arrays, RunStats]:
        """Run one step, and keep what it adds to the state.

        ``inputs``: arrays by name, or an array for the first input; a whole number where one is wanted. The position,
        an input of one number with that word in its name, is known if it is not given. A list of numbers is as many
        steps, such as a prompt. Returns outputs by name and the statistics, of the last step; raises what
        :meth:`Session.run` does, and the state is then what it was before the step that failed. ``Runtime.submit``
        takes steps as well, beside other requests."""
        if isinstance(inputs, Mapping) or np.ndim(inputs) != 1 or len(self._inputs[0].shape) == 1 == np.size(inputs):
            return self.run(inputs)
        *ahead, last = np.asarray(inputs).tolist()
        for one in ahead:
            self.run(one)
        return self.run(last)

    def fetch(self) -> Arrays:
        """Return the outputs of a step that has ended, by name; the next finds a row more."""
        outputs = super().fetch()
        self.filled += 1
        return outputs

    def _by_name(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
        return super()._by_name(numbers_given(self._inputs, inputs, self.filled))

    def close(self) -> None:
        """Clear the state and give its memory back. To close it again does nothing."""
        if self.state is not None:
            self.device.end_state(self.model, self.state)
            self.state = None

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
