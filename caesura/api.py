"""Defines the public functions: compile, open, load, call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt
import pydantic

from caesura.device_table import device_table
from caesura.duration_store import DurationStore
from compiler import Options
from hw.contract.bus import Bus, Progress
from hw.contract.params import SocParams, preset
from hw.image import Image
from sim import BACKENDS, DEFAULT_BACKEND
from sw.driver import BODY, Device as Driver, LoadedModel
from sw.runtime import (
    Conversation,
    ConversationBatch,
    Engines,
    RunStats,
    Session,
    least_busy,
    measured,
    past_of,
    queue_times,
    turns_taken,
)

if TYPE_CHECKING:
    from compiler import Compiled, Plan

Arrays = dict[str, npt.NDArray]
Inputs = npt.ArrayLike | Mapping[str, npt.ArrayLike]


class UsageError(ValueError):
    """Says that a request names something that does not exist; lists what does."""


def resolve(params: str | SocParams) -> SocParams:
    """Return the parameters of a preset's name, or parameters as they are; raises ``ParamError`` for an unknown
    name."""
    return preset(params) if isinstance(params, str) else params


def options_of(given: Mapping[str, Any]) -> Options:
    """Return the options of the compiler that a file gives by name; raises :class:`UsageError` for one it has not, and
    for a value that is not of the option's type, or negative."""
    known: dict[str, Any] = {field.name: field.type for field in fields(Options)}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"options: {name!r} is no option of the compiler; known are {', '.join(known)}")
        try:
            pydantic.TypeAdapter(known[name]).validate_python(value, strict=True)
        except pydantic.ValidationError as error:
            raise UsageError(f"options: {name}: {error.errors()[0]['msg']}, not {value!r}") from None
        if known[name] in (int, float) and not value >= 0:
            raise UsageError(f"options: {name}: must be 0 or more, not {value!r}")
    return Options(**given)


def compile(
    path: str | PathLike,
    preset: str | SocParams | None = None,
    *,
    engines: int | Literal["auto"] | None = None,
    placed: bool = False,
    fallback: bool = False,
    observe: bool = False,
    options: Options | None = None,
    plan: "Plan | str | PathLike | None" = None,
    jobs: int | None = None,
    cache: bool = True,
    batch: int = 1,
    sizes: Mapping[str, int] | None = None,
    sequences: int = 1,
    waits: Sequence[float] = (),
    measure_on: str = "model",
) -> Image:
    """Compile the ONNX file ``path`` for the hardware of ``preset`` (a name or parameters; default: ``tiny``).

    Parameters
    ----------
    engines : how many engines share each layer: all of them by default; ``auto``: as many as the model deserves
    placed : layers are not shared by the engines; each runs on one of them, parts and branches of the model side by
        side; with ``auto``, they are shared wherever that takes less
    fallback : run on the CPU what the accelerator cannot amid the network. What stands in float before its first 8-bit
        tensor and behind its last runs there always; :func:`caesura.cpu_steps` tells what of an image does
    observe : store every operator's output in DRAM, for checks
    options : cancellation points and limits; how many engines and whether to observe is said by the parameters above
    plan : a plan of the model, or its file: what is None in it is decided; hardware, engines and options are its own
    jobs : processes that share the work where there is much of it: by default as many as there are CPUs
    cache : take layers that were compiled before from the cache folder, and keep others there
    batch : of a model whose first dimension is dynamic
    sizes : of dynamic dimensions, by the names that they have in the model
    sequences : a step model computes a step of so many at once, whose weights are loaded once: :meth:`Model.batch`
    waits : for ``auto``, the expected queue time of each engine in cycles, as of :meth:`Device.queue_times`: fewer
        engines are taken if an inference ends sooner on those that are free first
    measure_on : the backend on which programs run for ``order="measured"`` and ``"timed"``, as of :func:`open`

    Raises ``CompileError`` or ``ParamError``, :class:`UsageError` for an unknown backend.
    """
    if placed:
        options = replace(options or Options(), placed=True)
    return compile_with_report(
        path, preset, engines=engines, fallback=fallback, observe=observe, options=options, plan=plan, jobs=jobs,
        cache=cache, batch=batch, sizes=sizes, sequences=sequences, waits=waits,
        measure_on=measure_on,
    ).image  # fmt: skip


def compile_with_report(
    path: str | PathLike,
    preset: str | SocParams | None = None,
    *,
    engines: int | Literal["auto"] | None = None,
    fallback: bool = False,
    observe: bool = False,
    options: Options | None = None,
    plan: "Plan | str | PathLike | None" = None,
    told: Callable[[int, float], None] | None = None,
    jobs: int | None = None,
    cache: bool = True,
    batch: int = 1,
    sizes: Mapping[str, int] | None = None,
    sequences: int = 1,
    waits: Sequence[float] = (),
    measure_on: str = "model",
) -> "Compiled":
    """Compile as :func:`compile` does; return the image with the graph it was made from and the report of the
    compilation. With ``order="measured"`` or ``"timed"``, ``told`` is called with the number of programs measured, on
    the backend ``measure_on``, and the fewest cycles."""
    from caesura.model_cycles import layer_cycles, model_cycles  # only loaded where they are used
    from compiler import Plan, compile_with_report

    if plan is None:
        preset = preset or "tiny"
        engines = resolve(preset).engines if engines is None else engines
    elif not isinstance(plan, Plan):
        plan = Plan.read(Path(plan))
    params = None if preset is None else resolve(preset)
    _refuse_unknown(measure_on)
    return compile_with_report(
        Path(path), params, engines=engines, fallback=fallback, observe=observe, options=options, plan=plan,
        measure=partial(model_cycles, backend=measure_on), time_layers=partial(layer_cycles, backend=measure_on),
        told=told, jobs=jobs, cache=cache, batch=batch, sizes=sizes, sequences=sequences, waits=waits,
    )  # fmt: skip


def open(
    params: str | SocParams = "tiny",
    backend: str = DEFAULT_BACKEND,
    *,
    vcd: str | PathLike | None = None,
    progress: Progress | None = None,
) -> "Device":
    """Power a simulated SoC on.

    Parameters
    ----------
    params : a preset's name, or parameters
    backend : ``native`` (compiled RTL), ``cxxrtl`` (compiled by way of Yosys, which the extra ``dev`` installs),
        ``pysim`` (Amaranth's simulator: slow, same cycles) or ``model`` (no RTL: the same results, cycles within a few
        percent, and nothing to build)
    vcd : file for waveforms of all signals; not on ``native`` and ``model``
    progress : called now and then with the current cycle

    Raises ``ParamError`` for an unknown preset, :class:`UsageError` for an unknown backend.
    """
    from sim import open_simulator

    _refuse_unknown(backend)
    chosen = resolve(params)
    return Device(open_simulator(chosen, backend, vcd=vcd, progress=progress), DurationStore(chosen, backend))


def _refuse_unknown(backend: str) -> None:
    if backend not in BACKENDS:
        raise UsageError(f"no backend named {backend!r}; known are {', '.join(BACKENDS)}")


class Device:
    """A device is an SoC that is on, and a context manager. ``driver`` is the driver beneath, ``bus`` the simulator.
    ``durations`` knows what first runs of models measured before, and keeps what they measure now."""

    def __init__(self, bus: Bus, durations: DurationStore | None = None) -> None:
        self.bus = bus
        self._durations = durations
        self.driver = Driver(bus)

    def __repr__(self) -> str:
        """Return in a line what it is, and what is loaded."""
        names = [model.name for model in self.driver.models]
        told = f"{', '.join(map(repr, names[:3]))}{', ...' if names[3:] else ''}" if names else "nothing"
        return f"<Device {self.params.name!r} at cycle {self.bus.cycle:,}, loaded: {told}>"

    def _repr_html_(self) -> str:
        """Return a table of what is loaded, as notebooks show it."""
        return device_table(self, self.driver)

    @property
    def params(self) -> SocParams:
        """Return the parameters of the hardware."""
        return self.driver.params

    @property
    def taking_turns(self) -> str | None:
        """Return which loaded models take turns, as their windows in LV2 overlap, who claims what, and what mends it;
        None if all can run side by side."""
        return turns_taken(self.driver)

    def load(
        self,
        image: Image | str | PathLike,
        engines: Sequence[int] | Literal["least_used", "least_busy"] | None = None,
        *,
        like: Sequence["Model"] = (),
        tenant: str | None = None,
        keep_weights: bool = False,
        body_cycles: int | Sequence[int] = BODY,
    ) -> "Model":
        """Put a compiled model (an image or a ``.cimg`` file) into the device's memory.

        ``engines``: the engines that run it, as many as it was compiled for; ``least_used``: those that the fewest
        loaded models use; ``least_busy``: those whose queues are shortest; by default the first of the device.
        ``like``: loaded models; weights that equal those of one of them are not stored again. ``tenant``: whose it is;
        memories are cleared where they pass from one tenant to another, see ``docs/security.md``. Models without one
        are all of the same, the default tenant. ``body_cycles``: the most cycles one job may take, whatever its image
        says; raise it for models with very long layers. Numbers, one for each job, are the limits themselves, such as
        ``Certificate.body_limits[stream]``.

        Raises ``ImageError`` for an image that is damaged or built for other parameters, ``DriverError`` when it
        does not fit.
        """
        if not isinstance(image, Image):
            image = Image.load(Path(image))
        same = [each.loaded for each in like]
        if engines == "least_busy":
            engines = least_busy(self.driver, image)
        loaded = self.driver.load(
            image, engines, like=same, tenant=tenant, keep_weights=keep_weights, body_cycles=body_cycles
        )
        model = Model(self.driver, loaded, self._durations)
        if self._durations is not None:
            self._durations.recall(image)
            if not measured(image):
                self._durations.teach(past_of(self.driver, tenant), tenant)
        return model

    def queue_times(self) -> list[float]:
        """Return the expected queue time of each engine in cycles: the reference durations of all jobs of models that
        are queued there."""
        return queue_times(self.driver, range(self.params.engines))

    def unload(self, model: "Model") -> None:
        """Give a model's memory back; the model cannot run any more."""
        self.driver.unload(model.loaded)

    def close(self) -> None:
        """Power off."""
        self.driver.close()

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Model:
    """A model is loaded on a device: call it with an array (one input) or with arrays by name. Its first run stores how
    long each layer took, in the image and in ``durations``."""

    def __init__(self, driver: Driver, loaded: LoadedModel, durations: DurationStore | None = None) -> None:
        self.loaded = loaded
        self._driver, self._durations = driver, durations
        self._session = Session(driver, loaded)
        self._stats: RunStats | None = None

    def __repr__(self) -> str:
        """Return in a line what it is, where it runs, and what its last inference took."""
        last = f", last run {self._stats.cycles:,} cycles" if self._stats else ""
        return (
            f"<Model {self.loaded.name!r} on engines {', '.join(map(str, self.loaded.engines))}: "
            f"{len(self.image.meta.layers)} layers{last}>"
        )

    def _repr_html_(self) -> str:
        """Return a table of the layers, of the last inference if there was one, as notebooks show it."""
        return self.image._repr_html_() if self._stats is None else self._stats._repr_html_()

    @property
    def image(self) -> Image:
        """Return the image that was loaded."""
        return self.loaded.image

    @property
    def tenant(self) -> str | None:
        """Return the tenant whose the model is, and so whose its inferences and requests are; None is the default
        tenant."""
        return self.loaded.tenant

    @property
    def stats(self) -> RunStats | None:
        """Return cycles and counters of the last inference, or None before the first."""
        return self._stats

    def __call__(self, inputs: Inputs, *, engines: Engines = None) -> npt.NDArray | Arrays:
        """Run one inference and return the output array, or arrays by name if the model has several outputs.
        ``engines`` run it from now on, by default those of the inference before; ``least_busy``: those whose queues
        are shortest.

        Raises ``InputError`` for a wrong shape or dtype, ``DeviceFault`` or ``DeviceTimeout`` if the device fails;
        it can be used again then.
        """
        outputs, _ = self.run(inputs, engines=engines)
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def run(self, inputs: Inputs, *, engines: Engines = None) -> tuple[Arrays, RunStats]:
        """Run one inference as a call does, but always return outputs by name, with the statistics."""
        known = measured(self.image)
        outputs, self._stats = self._session.run(inputs, engines)
        if self._durations is not None and not known and measured(self.image):
            self._durations.remember(self.image, self.tenant)
        return outputs, self._stats

    def session(self) -> Conversation:
        """Return a session, in which inferences go on where the one before ended: see :class:`Conversation`."""
        return Conversation(self._driver, self.loaded)

    def batch(self) -> ConversationBatch:
        """Return what runs sessions of a model compiled for several ``sequences`` together: see
        :class:`ConversationBatch`."""
        return ConversationBatch(self._driver, self.loaded)


def run(
    model: str | PathLike | Image, inputs: Inputs, preset: str | SocParams = "tiny", backend: str = DEFAULT_BACKEND
) -> npt.NDArray | Arrays:
    """Compile ``model`` (unless it is an image), run it once on a device that is opened for it, return the outputs."""
    image = model if isinstance(model, Image) else compile(model, preset)
    with open(image.params, backend) as device:
        return device.load(image)(inputs)
