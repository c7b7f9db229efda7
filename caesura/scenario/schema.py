"""Reads scenario files: several models, their requests, and the machine that serves them. They are TOML, validated,
and may name files with the times of arrivals."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from caesura.scenario.arrivals import Arrivals, Closed, TraceSpec
from caesura.scenario.file_table import (
    MOST,
    Count,
    FileTable,
    NotNegative,
    Positive,
    ScenarioError,
    explained,
)
from caesura.scenario.lengths import Lengths
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.promises import CertificateSpec, Police
from sw.runtime import Mechanism

MOST_DEVICES = 16


class PreemptionSpec(FileTable):
    """Says what a more urgent request may do to those that run, and what that costs.

    ``mechanisms``: what may be done, of which the cheapest is. ``wait`` is for their end, ``dump`` suspends them, and
    ``kill`` lets them start over. Costs on the synthetic machine, which needs them: ``dump``, ``restore``, and the time
    ``interval`` between cancellation points, within a layer as between two. Real models cost what they cost.
    """

    mechanisms: Annotated[list[Mechanism], Field(min_length=1)] = Field(
        default_factory=lambda: [Mechanism.WAIT, Mechanism.DUMP]
    )
    dump: NotNegative | None = None
    restore: NotNegative | None = None
    interval: Positive | None = None


class MachineSpec(FileTable):
    """Describes the synthetic machine. Other backends take engines and memory from their preset.

    ``devices``: how many there are, all alike, each under policies of its own; more than one for real models alone.
    """

    engines: Annotated[int, Field(ge=1, le=64)] = 1
    memory: Annotated[int, Field(ge=1)] = 1 << 20
    cpus: Annotated[int, Field(ge=1)] = 1
    initial_waits: list[NotNegative] | None = None  #: of each engine's queue, for queue-time balancing
    layers_per_decision: Count = 1  #: layers, or blocks, that are decided on at a time
    initial_waits_decay: bool = False  #: they fall with time from the beginning on, as of engines that warm up
    estimate_error: Annotated[float, Field(ge=0, lt=1)] = 0.0  #: true durations differ by up to this share
    partial_loading: bool = False  #: loads begin before all of their room is free, and pause; not with preemption
    preemption: PreemptionSpec | None = None  #: backends that run real models take no costs from it
    preset: str = "tiny"  #: hardware, for backends that run real models
    params: dict[str, int] = Field(default_factory=dict)  #: there: parameters of the preset that are different
    devices: Annotated[int, Field(ge=1, le=MOST_DEVICES)] = 1  #: there: a request goes where it waits least
    placed: bool = False  #: there: each layer runs on one engine that a policy chooses, otherwise on all

    @property
    def may_kill(self) -> bool:
        """Return whether a more urgent request may kill those that run."""
        return self.preemption is not None and Mechanism.KILL in self.preemption.mechanisms


class StageSpec(FileTable):
    """Describes a step of a request: a ``model`` on the accelerator, or ``cpu`` work of a ``duration``."""

    model: str | None = None
    cpu: str | None = None
    duration: NotNegative = 0.0
    priority: int | None = None  #: instead of the stream's
    tokens: Count | None = None  #: of a model that keeps a state: steps of a conversation that begins with the request
    #: of work on the CPU: its end is known when it begins, so that a switch to the next stage may begin ahead of it
    announced: bool = False

    @pydantic.model_validator(mode="after")
    def _is_one_thing(self) -> "StageSpec":
        if (self.model is None) == (self.cpu is None):
            raise ValueError("must have either model or cpu")
        if self.model is not None and self.duration:
            raise ValueError("has model and duration; durations of models are those of their layers, so remove it")
        if self.model is None and self.tokens is not None:
            raise ValueError("has cpu and tokens; a model that keeps a state has some, so remove it")
        if self.model is not None and self.announced:
            raise ValueError("has model and announced; only the end of work on the CPU is known before, so remove it")
        return self

    @property
    def name(self) -> str:
        """Return the name of the model, or of the work on the CPU."""
        return self.model or self.cpu or ""


class Stream(FileTable):
    """Describes requests of one kind. Each runs through ``stages`` in order; several models make a cascade.

    ``late``: what becomes of a request at its deadline if it has not ended: it goes on (``keep``), or is aborted and
    counts as dropped (``drop``). ``lengths``: of its inputs, for models with a dynamic dimension: one, several in turn,
    or random ones.
    """

    name: str
    stages: Annotated[list[StageSpec], Field(min_length=1)]
    arrivals: Arrivals
    priority: int = 0
    deadline: Positive | None = None  #: from arrival to the end of the last stage
    late: Literal["keep", "drop"] = "keep"
    promise: Literal["hard", "none"] = "none"  #: hard: ``caesura admit`` answers for its deadline
    police: Police | None = None  #: the rate to which it is held, where its arrivals have none
    lengths: Lengths | None = None

    @pydantic.model_validator(mode="after")
    def _waits_for_own_stage(self) -> "Stream":
        names = [stage.name for stage in self.stages]
        if isinstance(self.arrivals, Closed) and self.arrivals.after not in (None, *names):
            raise ValueError(f"arrivals.after is {self.arrivals.after!r}; stages are {', '.join(names)}")
        if self.late == "drop" and self.deadline is None:
            raise ValueError("has late = 'drop' and no deadline at which to drop a request; add deadline = ...")
        return self

    @property
    def models(self) -> list[str]:
        """Return the models of its stages, each once."""
        return list(dict.fromkeys(stage.model for stage in self.stages if stage.model is not None))


#: Cycles of a unit of time, at a nominal 1 GHz.
CYCLES = {"cycles": 1, "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def is_endless(stream: Stream) -> bool:
    """Return whether requests of ``stream`` follow each other for as long as there are others."""
    return isinstance(stream.arrivals, Closed) and stream.arrivals.count is None


class Scenario(FileTable):
    """Holds a whole scenario file."""

    name: str
    description: str = ""
    time_unit: str = "ms"
    seed: int = 0
    policy: str | None = None  #: where nobody asks for another: a name, ``module:Class`` or ``file.py:Class``
    machine: MachineSpec = MachineSpec()
    certificate: CertificateSpec = CertificateSpec()
    models: Annotated[dict[str, ModelSpec], Field(min_length=1)]
    streams: Annotated[list[Stream], Field(min_length=1)]

    @pydantic.model_validator(mode="after")
    def _fits_together(self) -> "Scenario":
        for stream in self.streams:
            self._check_models(stream)
        if len({stream.name for stream in self.streams}) < len(self.streams):
            raise ValueError("two streams have the same name; rename one")
        if all(is_endless(stream) for stream in self.streams):
            raise ValueError("has only closed loops without a count, which never end; give one of them a count")
        count = sum(stream.arrivals.count or 0 for stream in self.streams if not isinstance(stream.arrivals, TraceSpec))
        if count > MOST:
            raise ValueError(f"has {count:,} requests, {MOST:,} at most; lower the counts of arrivals")
        waits = self.machine.initial_waits
        if waits is not None and len(waits) != self.machine.engines:
            raise ValueError(f"machine.initial_waits has {len(waits)} values for {self.machine.engines} engines")
        if self.machine.partial_loading and self.machine.preemption is not None:
            raise ValueError("machine has partial_loading and preemption; remove one")
        for name, model in self.models.items():
            self._check_engines(name, model)
            for layer in model.layers:
                if layer.bytes > self.machine.memory:
                    raise ValueError(
                        f"a layer of model {name!r} needs {layer.bytes} bytes, machine.memory is {self.machine.memory};"
                        " split the layer or raise machine.memory"
                    )
        return self

    def _check_engines(self, name: str, model: ModelSpec) -> None:
        """Raise ``ValueError`` for engines of a model that do not go with whether the machine places layers."""
        if model.placed and not self.machine.placed:
            raise ValueError(f"model {name!r} is placed, and the machine places no layers; add machine.placed = true")
        if self.machine.placed and model.engines not in (None, 1):
            raise ValueError(
                f"model {name!r} has engines, and machine.placed lets a policy choose one for each layer; remove either"
            )

    def _check_models(self, stream: Stream) -> None:
        """Raise ``ValueError`` for models of a stream that do not exist, or whose lengths nothing says."""
        for name in stream.models:
            if name not in self.models:
                raise ValueError(f"stream {stream.name!r} runs model {name!r}; models are {', '.join(self.models)}")
            if self.models[name].dimension is not None and stream.lengths is None and not self.models[name].inputs:
                raise ValueError(
                    f"stream {stream.name!r} runs model {name!r}, whose dimension {self.models[name].dimension!r} is "
                    "dynamic; give the stream lengths, or the model inputs"
                )
        written = any(self.models[name].outputs is not None for name in stream.models)
        if written and not re.fullmatch(r"\w[\w .+-]*", stream.name):
            raise ValueError(
                f"stream {stream.name!r} gives its name to files of outputs; use letters, digits and . + - _ alone"
            )
        used = [self.models[name] for name in stream.models]
        if stream.lengths is not None and not any(model.dimension and not model.inputs for model in used):
            raise ValueError(
                f"stream {stream.name!r} has lengths, and none of its models a dynamic dimension, for which inputs are "
                "made; add dimension = ... to [models.NAME] and leave its inputs out, or remove lengths"
            )

    @property
    def used_models(self) -> list[str]:
        """Return the models that streams run, by name."""
        return sorted({name for stream in self.streams for name in stream.models})

    @property
    def cycles_per_unit(self) -> int:
        """Return the cycles of the unit of time; raises :class:`ScenarioError` for a unit that is no time."""
        if self.time_unit not in CYCLES:
            raise ScenarioError(f"time_unit {self.time_unit!r} is no time on this backend; use {', '.join(CYCLES)}")
        return CYCLES[self.time_unit]

    def without_outputs(self) -> "Scenario":
        """Return the scenario with models that write no files."""
        models = {name: model.model_copy(update={"outputs": None}) for name, model in self.models.items()}
        return self.model_copy(update={"models": models})


def load_scenario(path: Path | str) -> Scenario:
    """Read and validate a scenario file. Raises :class:`ScenarioError`."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: not a text file; scenario files are TOML in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: not valid TOML: {error}") from None
    return parse_scenario(content, str(path))


def parse_scenario(content: dict[str, object], where: str) -> Scenario:
    """Validate what a scenario file holds. Raises :class:`ScenarioError`."""
    try:
        return Scenario.model_validate(content)
    except pydantic.ValidationError as error:
        raise ScenarioError(explained(where, error)) from None
