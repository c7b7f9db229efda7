"""Reads scenario files: several models, their requests, and the machine that serves them. They are TOML, validated,
and may name files with the times of arrivals."""

import random
import tomllib
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from caesura.api import UsageError, options_of

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MOST = 1_000_000  #: layers of a model, requests of a scenario
Count = Annotated[int, Field(ge=1, le=MOST)]


class ScenarioError(UsageError):
    """Says why a scenario cannot be used; names the file, the key, what is wrong and the way out."""


class _Table(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class LayerSpec(_Table):
    """Describes a layer of a model for the synthetic machine, or ``repeat`` equal ones. Times are in the scenario's
    unit."""

    load: NotNegative = 0.0
    compute: NotNegative
    bytes: Annotated[int, Field(ge=0)] = 0
    repeat: Count = 1
    after: list[int] | None = None  #: layers of this model whose outputs it reads; by default the one before
    block: str | None = None  #: neighbours of one name, and repetitions, are scheduled together


class ModelSpec(_Table):
    """Describes a model: ``layers`` for the synthetic machine, ``onnx`` (a path) or ``workload`` (a name) for the
    others."""

    layers: list[LayerSpec] = []
    onnx: Path | None = None
    workload: str | None = None
    lv2_limit: Annotated[int, Field(ge=1)] | None = (
        None  #: bytes for each copy of a real model; an equal share if absent
    )
    #: how often a real model is loaded; if absent, once, or up to twice in a closed loop
    copies: Annotated[int, Field(ge=1, le=64)] | None = None
    fallback: bool = False  #: run on the CPU what the accelerator cannot run of a real model
    keep_weights: bool = False  #: of a real model: weights that an inference finds in LV2 are not loaded again
    options: dict[str, bool | int | float | str] = {}  #: of the compiler, for a real model, by name

    @pydantic.model_validator(mode="after")
    def _has_content(self) -> "ModelSpec":
        if not self.layers and self.onnx is None and self.workload is None:
            raise ValueError("describes nothing; give layers, onnx or workload")
        if self.onnx is not None and self.workload is not None:
            raise ValueError("has both onnx and workload; remove one")
        if odd := self.options.keys() & {"engines", "observe", "lv2_limit", "placed"}:
            raise ValueError(f"has options {', '.join(sorted(odd))}; machine and lv2_limit say that, so remove it")
        options_of(self.options)
        if (count := sum(layer.repeat for layer in self.layers)) > MOST:
            raise ValueError(f"has {count:,} layers with repetitions, {MOST:,} at most; repeat fewer")
        for number, after in enumerate(self.dependencies):
            for other in after:
                if not 0 <= other < number:
                    raise ValueError(f"layer {number} comes after {other}, which is not an earlier layer; reorder them")
        return self

    @property
    def flat_layers(self) -> list[LayerSpec]:
        """Return ``layers`` with repetitions written out."""
        return [layer for layer in self.layers for _ in range(layer.repeat)]

    @property
    def dependencies(self) -> list[tuple[int, ...]]:
        """Return of each of :attr:`flat_layers` the earlier layers that it reads."""
        return [
            tuple(layer.after) if layer.after is not None else ((number - 1,) if number else ())
            for number, layer in enumerate(self.flat_layers)
        ]


class PreemptionSpec(_Table):
    """Says what preemption costs, within a layer as between two. ``interval``: time between cancellation points."""

    dump: NotNegative
    restore: NotNegative
    interval: Positive


class MachineSpec(_Table):
    """Describes the synthetic machine. Other backends take engines and memory from their preset."""

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
    params: dict[str, int] = {}  #: there: parameters of the preset that are different
    placed: bool = False  #: there: each layer runs on one engine that a policy chooses, otherwise on all


class Periodic(_Table):
    """Sends one request each ``period``, the first at ``start``."""

    kind: Literal["periodic"]
    period: Positive
    count: Count
    start: NotNegative = 0.0


class Poisson(_Table):
    """Sends requests at random, ``interval`` apart on average, from ``start`` on."""

    kind: Literal["poisson"]
    interval: Positive
    count: Count
    start: NotNegative = 0.0


class Closed(_Table):
    """Keeps ``concurrency`` requests at any time: the next arrives when one has ended, or has ended its stage
    ``after``. Without a ``count`` requests follow until all streams that have one, or times, have ended."""

    kind: Literal["closed"]
    count: Count | None = None
    concurrency: Count = 1
    think: NotNegative = 0.0  #: time from the end of a request to the arrival of the next
    after: str | None = None


class TraceSpec(_Table):
    """Sends requests at ``times``, or at the times in ``file``: one number per line."""

    kind: Literal["trace"]
    times: list[NotNegative] = []
    file: Path | None = None


Arrivals = Annotated[Periodic | Poisson | Closed | TraceSpec, Field(discriminator="kind")]


def times(arrivals: Arrivals, rng: random.Random, folder: Path) -> list[float]:
    """Return the arrival times of requests that do not wait for others. TraceSpec files are looked up in ``folder``.

    Raises :class:`ScenarioError` for a trace that cannot be read.
    """
    match arrivals:
        case Periodic():
            return [arrivals.start + number * arrivals.period for number in range(arrivals.count)]
        case Poisson():
            gaps = (rng.expovariate(1 / arrivals.interval) for _ in range(arrivals.count))
            return [arrivals.start + time for time in accumulate(gaps)]
        case TraceSpec():
            return sorted(arrivals.times if arrivals.file is None else _times_in(folder / arrivals.file))
        case Closed():
            return [0.0] * min(arrivals.concurrency, arrivals.count or MOST)


def _times_in(path: Path) -> list[float]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ScenarioError(f"{path}: arrival trace cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: not a text file; write one time per line") from None
    result = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                result.append(float(line))
            except ValueError:
                raise ScenarioError(f"{path}: line {number}: {line!r} is not a time; write one per line") from None
            if not 0 <= result[-1] < float("inf"):
                raise ScenarioError(f"{path}: line {number}: {line!r} must be a time from 0 on")
    return result


class StageSpec(_Table):
    """Describes a step of a request: a ``model`` on the accelerator, or ``cpu`` work of a ``duration``."""

    model: str | None = None
    cpu: str | None = None
    duration: NotNegative = 0.0
    priority: int | None = None  #: instead of the stream's
    #: of work on the CPU: its end is known when it begins, so that a switch to the next stage may begin ahead of it
    announced: bool = False

    @pydantic.model_validator(mode="after")
    def _is_one_thing(self) -> "StageSpec":
        if (self.model is None) == (self.cpu is None):
            raise ValueError("must have either model or cpu")
        if self.model is not None and self.duration:
            raise ValueError("has model and duration; durations of models are those of their layers, so remove it")
        if self.model is not None and self.announced:
            raise ValueError("has model and announced; only the end of work on the CPU is known before, so remove it")
        return self

    @property
    def name(self) -> str:
        """Return the name of the model, or of the work on the CPU."""
        return self.model or self.cpu or ""


class Stream(_Table):
    """Describes requests of one kind. Each runs through ``stages`` in order; several models make a cascade."""

    name: str
    stages: Annotated[list[StageSpec], Field(min_length=1)]
    arrivals: Arrivals
    priority: int = 0
    deadline: Positive | None = None  #: from arrival to the end of the last stage

    @pydantic.model_validator(mode="after")
    def _waits_for_own_stage(self) -> "Stream":
        names = [stage.name for stage in self.stages]
        if isinstance(self.arrivals, Closed) and self.arrivals.after not in (None, *names):
            raise ValueError(f"arrivals.after is {self.arrivals.after!r}; stages are {', '.join(names)}")
        return self


def is_endless(stream: Stream) -> bool:
    """Return whether requests of ``stream`` follow each other for as long as there are others."""
    return isinstance(stream.arrivals, Closed) and stream.arrivals.count is None


#: Cycles of a unit of time, at a nominal 1 GHz.
CYCLES = {"cycles": 1, "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


class Scenario(_Table):
    """Holds a whole scenario file."""

    name: str
    description: str = ""
    time_unit: str = "ms"
    seed: int = 0
    machine: MachineSpec = MachineSpec()
    models: Annotated[dict[str, ModelSpec], Field(min_length=1)]
    streams: Annotated[list[Stream], Field(min_length=1)]

    @pydantic.model_validator(mode="after")
    def _fits_together(self) -> "Scenario":
        for stream in self.streams:
            for stage in stream.stages:
                if stage.model is not None and stage.model not in self.models:
                    raise ValueError(
                        f"stream {stream.name!r} runs model {stage.model!r}; models are {', '.join(self.models)}"
                    )
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
            for layer in model.layers:
                if layer.bytes > self.machine.memory:
                    raise ValueError(
                        f"a layer of model {name!r} needs {layer.bytes} bytes, machine.memory is {self.machine.memory};"
                        " split the layer or raise machine.memory"
                    )
        return self


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
        raise ScenarioError(_explain(where, error)) from None


def _explain(where: str, error: pydantic.ValidationError) -> str:
    first, more = error.errors()[0], error.error_count() - 1
    key = ".".join(str(part) for part in first["loc"]) or "the file"
    message = first["msg"].removeprefix("Value error, ")
    way_out = {
        "missing": f"is missing; add {key.rsplit('.', 1)[-1]} = ...",
        "extra_forbidden": "is not a known key; remove it or correct its spelling (docs/scheduling.md lists all keys)",
        "union_tag_not_found": "has no kind; add kind = 'periodic', 'poisson', 'closed' or 'trace'",
    }
    told = way_out.get(first["type"], message)
    shown = first["input"] if isinstance(first["input"], str | int | float | bool) else None
    given = f", not {shown!r}" if shown is not None and first["type"] not in way_out else ""
    rest = f" (and {more} more)" if more else ""
    return f"{where}: {key}: {told}{given}{rest}"
