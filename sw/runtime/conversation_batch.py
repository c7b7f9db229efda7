"""Conversations that take their steps together: the weights of their model are loaded once for all of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.contract.isa import Segment
from hw.image import Image, NumberProblem, ParameterInfo, PortInfo, parameter_values
from sw.driver import Device, DriverError, LoadedModel
from sw.runtime.conversation import numbers_given, step_ports
from sw.runtime.model_data import Arrays, InputError, to_tensor
from sw.runtime.session import Session
from sw.runtime.stats import RunStats


def batch_places(image: Image) -> int:
    """Return for how many sequences a model was compiled: 1 if it is no batch, also if it keeps nothing."""
    named = {port.name for port in image.meta.inputs}
    return max(1, len({info.name for info in image.meta.parameters} - named))


def single_ports(image: Image) -> list[PortInfo]:
    """Return the inputs of a step of one conversation of a batch, as the model of one sequence has them; tensors are
    those of the first place."""
    numbers = {info.name for info in image.meta.parameters}
    ports = list[PortInfo]()
    for port in step_ports(image)[0]:
        name, _, place = port.name.rpartition(".")
        if port.name not in numbers:
            ports.append(replace(port, shape=[1, *port.shape[1:]]))
        elif place == "0":
            ports.append(replace(port, name=name))
    return ports


Given = npt.ArrayLike | Mapping[str, npt.ArrayLike]
Step = dict[str, npt.NDArray]  #: what a step is given, checked: by tensor, as it is stored


class ConversationBatch(Session):
    """Runs steps of as many conversations as its model was compiled for (``sequences``): an inference is a step of each
    that has one. Places that nobody has, and conversations without a step, are computed in vain, and stay as they are.

    Conversations join (:meth:`join`) and leave (``close``) between steps. ``places``: how many there are; ``longest``:
    steps that each has memory for. Raises :class:`InputError` for a model of one sequence, :class:`DriverError` if DRAM
    is full.
    """

    def __init__(self, device: Device, model: LoadedModel) -> None:
        super().__init__(device, model)
        meta = model.image.meta
        self._held = {tensor.name: tensor for tensor in meta.tensors if tensor.segment == Segment.SCRATCH}
        named = {port.name for port in meta.inputs}
        lengths = {info.name: info.high for info in meta.parameters if info.name not in named}
        self.places = batch_places(model.image)
        if self.places < 2 or not self._held:
            raise InputError(f"model {model.name!r} is not for several sequences: compile it with sequences=2 or more")
        self.longest = min(lengths.values()) + 1
        self._given = [port for port in meta.inputs if port.tensor not in self._held]
        self._made = [port for port in meta.outputs if port.tensor not in self._held]
        self._members: list[BatchedConversation | None] = [None] * self.places
        self._stepping: list[BatchedConversation] = []
        self.state = device.new_state(model)

    @property
    def inputs(self) -> list[PortInfo]:
        """Return what an inference is given: numbers of each place, and arrays of all places."""
        return self._given

    @property
    def outputs(self) -> list[PortInfo]:
        """Return what an inference gives: arrays with an entry for each place along the first axis."""
        return self._made

    @property
    def free_places(self) -> int:
        """Return how many conversations may join."""
        return self._members.count(None)

    def join(self) -> "BatchedConversation":
        """Return a new conversation, which has a place until it is closed. Raises :class:`DriverError` if no place is
        free."""
        if self.state is None:
            raise DriverError(f"a batch of model {self.model.name!r} was closed: begin another")
        if None not in self._members:
            raise DriverError(
                f"all {self.places} places of a batch of model {self.model.name!r} are taken: close a conversation, "
                "begin another batch, or compile the model for more sequences"
            )
        place = self._members.index(None)
        member = self._members[place] = BatchedConversation(self, place)
        return member

    def step(
        self, inputs: Mapping["BatchedConversation", Given]
    ) -> tuple[dict["BatchedConversation", Arrays], RunStats]:
        """Run one step of each conversation in ``inputs``, given what :meth:`Conversation.step` takes for one step.
        Returns the outputs of each by name, and the statistics of the inference. Raises what :meth:`Session.run` does;
        no conversation has gone on then."""
        steps: Any = {member: self.checked(member, given) for member, given in inputs.items()}
        outputs, stats = self.run(steps)
        return {member: member.part(outputs) for member in inputs}, stats

    def checked(self, member: "BatchedConversation", inputs: Given) -> Step:
        """Return what a step of ``member`` is given. Raises :class:`InputError` for what it cannot take,
        :class:`DriverError` for a conversation that is none of the batch."""
        if self.state is None or self._members[member.place] is not member:
            raise DriverError(f"a conversation of model {self.model.name!r} was closed, or is one of another batch")
        if member.filled >= self.longest:
            raise InputError(
                f"model {self.model.name!r}: {member.filled} steps fill its state; compile it for a longer one"
            )
        ports = {self._called(port): port for port in self._given if self._place(port.name) in (None, member.place)}
        single = {name: self._single(port, name) for name, port in ports.items()}
        given = numbers_given(list(single.values()), inputs, member.filled)
        for name in [*(name for name in ports if name not in given), *(name for name in given if name not in ports)]:
            problem = "is missing" if name in ports else "does not exist"
            raise InputError(
                f"input {name!r} {problem}; a step of model {self.model.name!r} takes {', '.join(map(repr, ports))}"
            )
        step = Step()
        for name, port in ports.items():
            tensor = self._tensors[port.tensor]
            one = tensor if self._place(port.name) is not None else replace(tensor, shape=[1, *tensor.shape[1:]])
            step[port.tensor] = to_tensor(single[name], one, given[name])
            self._check_range(port, name, step[port.tensor])
        return step

    def store(self, inputs: Mapping["BatchedConversation", Step]) -> None:  # type: ignore[override]
        """Write what the steps of conversations are given. Raises :class:`DriverError` for a batch that was closed."""
        if self.state is None:
            raise DriverError(f"a batch of model {self.model.name!r} was closed: begin another")
        self._stepping = list(inputs)
        stored = {}
        for port in self._given:
            tensor = self._tensors[port.tensor]
            stored[port.tensor] = np.zeros(tensor.shape, tensor.dtype)
        for member in self._stepping:
            for name, value in inputs[member].items():
                if stored[name].shape == value.shape:
                    stored[name] = value
                else:
                    stored[name][member.place] = value[0]
        self._put(stored)

    def fetch(self) -> Arrays:
        """Return the outputs of all places; conversations that had a step have gone on."""
        outputs = super().fetch()
        for member in self._stepping:
            member.filled += 1
        self._stepping = []
        return outputs

    def rows(self, info: ParameterInfo) -> int:
        """Return how many rows a conversation has filled. A step that is computed in vain writes a row behind them,
        which the next overwrites."""
        place = self._place(info.name)
        member = None if place is None else self._members[place]
        return min(member.filled, info.high) if member else 0

    def leave(self, member: "BatchedConversation") -> None:
        """Clear what a conversation has left, and free its place. Raises :class:`DriverError` while a run time has a
        step of it."""
        if self.state is None or self._members[member.place] is not member:
            return
        if member.busy:
            raise DriverError(f"a conversation of model {self.model.name!r} has a step that has not ended: wait for it")
        kept = [tensor for name, tensor in self._held.items() if name.endswith(f".{member.place}")]
        self.model.clear_state(self.state, kept)
        self._members[member.place] = None

    def close(self) -> None:
        """End all conversations, clear their states and give the memory back. To close it again does nothing."""
        if self.state is not None:
            self.device.end_state(self.model, self.state)
            self.state, self._members = None, [None] * self.places

    def __enter__(self) -> "ConversationBatch":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _place(self, name: str) -> int | None:
        """Return the place whose number is called ``name``; None for what all places have together."""
        numbers = {info.name for info in self.model.image.meta.parameters}
        return int(name.rpartition(".")[2]) if name in numbers else None

    def _called(self, port: PortInfo) -> str:
        """Return what the model of one sequence calls an input."""
        return port.name if self._place(port.name) is None else port.name.rpartition(".")[0]

    def _single(self, port: PortInfo, name: str) -> PortInfo:
        """Return the input of one conversation."""
        shape = port.shape if self._place(port.name) is not None else [1, *port.shape[1:]]
        return replace(port, name=name, shape=shape)

    def _check_range(self, port: PortInfo, name: str, value: npt.NDArray) -> None:
        infos = [replace(info, name=name) for info in self.model.image.meta.parameters if info.name == port.name]
        try:
            parameter_values(infos, {name: int(value.reshape(-1)[0])} if infos else {})
        except NumberProblem as problem:
            raise InputError(f"model {self.model.name!r}: {problem}") from None


class BatchedConversation:
    """One conversation of ``batch``, at ``place`` until it is closed. ``filled``: steps so far."""

    def __init__(self, batch: ConversationBatch, place: int) -> None:
        self.batch, self.place, self.filled = batch, place, 0
        self._step_done: Callable[[], bool] | None = None

    @property
    def busy(self) -> bool:
        """Return whether a run time has a step of it that has not ended."""
        return self._step_done is not None and not self._step_done()

    def busy_until(self, done: Callable[[], bool]) -> None:
        """Note that a run time has a step of it until ``done``."""
        self._step_done = done

    def step(self, inputs: Given) -> tuple[Arrays, RunStats]:
        """Run a step in which no other conversation goes on; see :meth:`Conversation.step`. A list of numbers is as
        many steps."""
        if isinstance(inputs, Mapping) or np.ndim(inputs) != 1:
            outputs, stats = self.batch.step({self: inputs})
            return outputs[self], stats
        *ahead, last = np.asarray(inputs).tolist()
        for one in ahead:
            self.step(one)
        return self.step(last)

    def part(self, outputs: Arrays) -> Arrays:
        """Return what the outputs of all places hold of this conversation."""
        return {name: value[self.place : self.place + 1] for name, value in outputs.items()}

    def close(self) -> None:
        """Clear the state and give the place to others. To close it again does nothing."""
        self.batch.leave(self)

    def __enter__(self) -> "BatchedConversation":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
