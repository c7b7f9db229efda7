"""What benches cost, counted instead of timed: cheap figures that are the same on every machine.

A bench takes minutes, and its seconds depend on the machine. Its proxy does a little of the same work and counts it, so
that the ordinary tests see a change that makes it cost twice as much: :data:`PROXIES`, by bench, and for the campaigns
of ``caesura bench trust``. ``benchmarks/ceilings.json`` says how much each count may be at most and at least: less
would mean that it counts nothing any more. No command writes that file: whoever raises a ceiling says why.

``python -m benchmarks.proxies`` prints all counts as JSON.
"""

import json
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import caesura
from benchmarks import decisions, kernels_cases
from benchmarks.accuracy_cases import whole_networks
from benchmarks.lab import ALONE
from benchmarks.loads import building, disb
from benchmarks.loads.load import Load
from benchmarks.trust.program_campaign import ProgramCampaign
from benchmarks.workloads import workload
from compiler import DynamicDimension, Options, compile_model, compile_range
from hw import Soc
from hw.contract.isa import INSN_BYTES
from hw.contract.params import preset
from hw.image import Image, KernelAttributes
from sim.cost import DecodedCode, forget_decoded
from sim.model import Agenda, ModelBus
from sim.rtl import SimTop, native
from sw.runtime import Mechanism, Runtime

Counts = dict[str, int]

ROOT = Path(__file__).parents[1]
_LIMIT = 100_000_000
_REQUESTS = 24
_TINY = preset("tiny")
_TWO = _TINY.replace(name="two engines", engines=2)
_SEED = 1


def _modelspeed() -> Counts:
    """Timing of a network of many jobs, twice; each has a code limit of its own."""
    image, decoded = _resnet(), 0

    def noted(code: DecodedCode, *_: object) -> None:
        nonlocal decoded
        decoded += len(code)

    forget_decoded()
    with ModelBus(image.params, data=False) as bus, caesura.Device(bus) as device:
        model = device.driver.load(image)
        memory = bus._soc.shared.memory
        bursts = memory.bursts
        tracemalloc.start()
        with (
            _planned() as events,
            _calls(DecodedCode, "__init__", told=noted),
            _python_calls("sim") as calls,
        ):
            for _ in range(2):
                device.driver.begin(model, _LIMIT)
                device.driver.collect(device.driver.submit(model, range(len(image.meta.jobs)), limit=_LIMIT), _LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return {
        "instructions": len(image.code) // INSN_BYTES, "instructions decoded": decoded, "events": events(),
        "bursts": memory.bursts - bursts, "calls of the model": calls(), "kilobytes at the peak": peak >> 10,
    }  # fmt: skip


def _utilisation() -> Counts:
    """Compilation of the same network, and its cycles."""
    image = _resnet()
    with ModelBus(image.params, data=False) as bus, caesura.Device(bus) as device:
        model = device.driver.load(image)
        begin = bus.cycle
        device.driver.begin(model, _LIMIT)
        device.driver.collect(device.driver.submit(model, range(len(image.meta.jobs)), limit=_LIMIT), _LIMIT)
        cycles = bus.cycle - begin
    return {"instructions": len(image.code) // INSN_BYTES, "bytes of weights": len(image.weights), "cycles": cycles}


def _order() -> Counts:
    """The compiler's calls for a network with branches, those of the order search apart."""
    with _python_calls("compiler/plan/order") as search, _python_calls("compiler", "sim") as calls:
        image = compile_model(_small("squeezenet_small"), _TINY, jobs=1, options=ALONE, cache=False)
    return {"calls of the search": search(), "calls of the compiler": calls(), "jobs": len(image.meta.jobs)}


def _preemption() -> Counts:
    """Urgent requests of one model while another runs."""
    low, urgent = (compile_model(_small(name), _TINY, jobs=1, options=ALONE) for name in ("squeezenet_small", "digits"))
    with ModelBus(_TINY) as bus, caesura.Device(bus) as device:
        driver = device.driver
        runtime = Runtime(driver, preemptive=True, rule=lambda situation: Mechanism.DUMP, history=None)
        first, second = (driver.load(image) for image in (low, urgent))
        with _host_work() as counts:
            request = runtime.submit(first, _inputs(low))
            for after in (5_000, 15_000, 25_000):
                runtime.submit(second, _inputs(urgent), priority=1, arrival=bus.cycle + after)
            runtime.run_until_done()
        request.result()
        return counts() | {"preemptions": request.preempted, "cycles": bus.cycle}


def _scheduling() -> Counts:
    """Many requests at once, and the decisions of policies."""
    image = compile_model(_small("digits"), _TINY, jobs=1, options=ALONE)
    with ModelBus(_TINY) as bus, caesura.Device(bus) as device:
        runtime = Runtime(device.driver, history=None)
        model = device.driver.load(image)
        with _host_work() as counts:
            requests = [runtime.submit(model, _inputs(image)) for _ in range(_REQUESTS)]
            runtime.run_until_done()
        for request in requests:
            request.result()
    with _python_calls("sw/runtime") as deciding:
        decisions.layer_decision(8, 4, 1)
        decisions.placement(16, 1)
    return counts() | {"requests": _REQUESTS, "calls of decisions": deciding()}


def _tenants() -> Counts:
    """Two models on engines of their own, and an urgent request for one of these."""
    image = compile_model(_small("digits"), _TWO, engines=1, jobs=1, options=Options(lv2_limit=_TWO.lv2_bytes // 4))
    with ModelBus(_TWO) as bus, caesura.Device(bus) as device:
        runtime = Runtime(device.driver, preemptive=True, rule=lambda situation: Mechanism.DUMP, history=None)
        first, second, urgent = (device.driver.load(image, engines=[engine]) for engine in (0, 1, 1))
        with _host_work() as counts:
            requests = [runtime.submit(model, _inputs(image)) for model in (first, second)]
            requests.append(runtime.submit(urgent, _inputs(image), priority=1, arrival=bus.cycle + 3_000))
            runtime.run_until_done()
        for request in requests:
            request.result()
        return counts() | {"preemptions": runtime.switches, "cycles": bus.cycle}


def _loads() -> Counts:
    """Scenarios of all loads of one kind, without running them."""
    found = disb.loads()
    with _python_calls("benchmarks/loads", "caesura/scenario") as calls:
        made = [building.scenario(load, {"preset": "base"}, _alone_in(load), 20, whole=False) for load in found]
    return {"loads": len(found), "streams": sum(len(one.streams) for one in made), "calls": calls()}


def _alone_in(load: Load) -> dict[str, float]:
    return {tenant.name: 100_000.0 for tenant in load.tenants}


def _accuracy() -> Counts:
    """A recorded run of the model, with data."""
    image = compile_model(_small("digits"), _TINY, jobs=1, options=ALONE)
    with ModelBus(_TINY) as bus, caesura.Device(bus) as device:
        bus.record()
        model = device.load(image)
        with _planned() as events, _python_calls("sim/functional") as calls:
            model.run(_inputs(image))
        runs = len(bus.run_table)
    return {"instructions recorded": runs, "events": events(), "calls of units": calls()}


def _simspeed() -> Counts:
    """The netlist of a machine as the native simulator has it: its evaluations, and its compiled files."""
    files = native.generate(SimTop(_TINY, Soc(_TINY)))
    code = [text for name, text in files.items() if name.endswith(".c")]
    assignments = sum(text.count(" = ") for text in files.values())
    return {"files compiled": len(code), "assignments": assignments, "kilobytes of C": sum(map(len, code)) >> 10}


def _kernels() -> Counts:
    """Look-ups in a large library, and a range kernel of a few lengths."""
    library, demands = kernels_cases.mixed_library()
    rng = random.Random(_SEED)
    asked = [(rng.choice(demands), rng.randint(1, 128)) for _ in range(200)]
    with _python_calls("sw/kernels", "hw/contract", "hw/image") as looked:
        found = sum(library.find(*one) is not None for one in asked)
    compiled: list[int] = []
    dimension, lengths = DynamicDimension.of(kernels_cases.same_network()), range(16, 22)
    attributes = KernelAttributes.of({"model": dimension.model}, "length", f"{lengths[0]}..{lengths[-1]}")
    with _python_calls("compiler") as calls:
        kernel = compile_range(
            dimension, _TINY, lengths, attributes, ALONE, told=lambda length, own: compiled.append(length)
        )
    return {
        "found": found, "calls of look-ups": looked(), "lengths compiled": len(compiled),
        "calls of the compiler": calls(), "bytes of the range kernel": len(kernel.to_bytes()),
    }  # fmt: skip


def _attention() -> Counts:
    """A block of attention, and its cycles."""
    with _python_calls("compiler") as calls:
        image = compile_model(workload("attention_2x16_32"), _TINY, jobs=1, options=ALONE, cache=False)
    with ModelBus(_TINY) as bus, caesura.Device(bus) as device:
        _, stats = device.load(image).run(_inputs(image))
    return {
        "instructions": len(image.code) // INSN_BYTES, "jobs": len(image.meta.jobs), "cycles": stats.cycles,
        "calls of the compiler": calls(),
    }  # fmt: skip


def _trust() -> Counts:
    """A round of two campaigns on the model."""
    counts = {}
    for hostile in (False, True):
        name = "hostile" if hostile else "differential"
        campaign = ProgramCampaign("model", hostile=hostile)
        tracemalloc.start()
        with _planned() as events, _python_calls("sim", "benchmarks") as calls:
            campaign.round(_SEED)
        counts[f"{name}: kilobytes at the peak"] = tracemalloc.get_traced_memory()[1] >> 10
        tracemalloc.stop()
        counts |= {f"{name}: events": events(), f"{name}: calls": calls()}
        counts[f"{name}: programs"] = campaign.reached["programs"]
        campaign.close()
    return counts


PROXIES: dict[str, Callable[[], Counts]] = {
    "utilisation": _utilisation,
    "preemption": _preemption,
    "simspeed": _simspeed,
    "scheduling": _scheduling,
    "tenants": _tenants,
    "loads": _loads,
    "accuracy": _accuracy,
    "modelspeed": _modelspeed,
    "order": _order,
    "kernels": _kernels,
    "attention": _attention,
    "trust": _trust,
}


# -- networks ------------------------------------------------------------------------------------------------
def _small(name: str) -> Path:
    """A network of few channels of the bench of accuracy."""
    return next(case for case in whole_networks(_TINY) if case.name == name).path()


@cache
def _resnet() -> Image:
    return compile_model(_small("resnet50_small"), _TWO, jobs=1, options=ALONE)


def _inputs(image: Image) -> dict[str, Any]:
    rng = np.random.default_rng(_SEED)
    return {port.name: rng.integers(0, 100, port.shape).astype(port.dtype) for port in image.meta.inputs}


# -- counting ------------------------------------------------------------------------------------------------
@contextmanager
def _host_work() -> Iterator[Callable[[], Counts]]:
    """What run time and driver do: their calls, and their accesses to the device."""
    with (
        _python_calls("sw") as calls,
        _calls(ModelBus, "read_reg", "write_reg") as registers,
        _calls(ModelBus, "read_mem", "write_mem") as memory,
    ):
        yield lambda: {"calls of the host": calls(), "registers": registers(), "memory accesses": memory()}


@contextmanager
def _planned() -> Iterator[Callable[[], int]]:
    """How many events fast models plan while they run."""
    count, run = 0, Agenda.run

    def counted(self: Agenda, last: int) -> None:
        nonlocal count
        before = self.planned
        try:
            run(self, last)
        finally:
            count += self.planned - before

    Agenda.run = counted  # type: ignore[method-assign]
    try:
        yield lambda: count
    finally:
        Agenda.run = run  # type: ignore[method-assign]


@contextmanager
def _calls(owner: type, *names: str, told: Callable[..., object] | None = None) -> Iterator[Callable[[], int]]:
    """How often methods of a class are called; ``told`` hears of each call when it has ended, with its arguments."""
    count = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            result = method(*given, **named)
            if told is not None:
                told(*given)
            return result

        return call

    methods = {name: getattr(owner, name) for name in names}
    own = {name: vars(owner).get(name) for name in names}
    for name, method in methods.items():
        setattr(owner, name, counted(method))
    try:
        yield lambda: count
    finally:
        for name, method in own.items():
            if method is None:
                delattr(owner, name)
            else:
                setattr(owner, name, method)


@contextmanager
def _python_calls(*folders: str) -> Iterator[Callable[[], int]]:
    """How many functions of files in ``folders`` are called. May be used within itself."""
    count, inside = 0, tuple(f"{ROOT / folder}/" for folder in folders)
    before = sys.getprofile()
    known: dict[str, bool] = {}

    def noted(frame: FrameType, event: Any, argument: Any) -> None:
        nonlocal count
        if before is not None:
            before(frame, event, argument)
        if event == "call":
            name = frame.f_code.co_filename
            if name not in known:
                known[name] = name.startswith(inside)
            count += known[name]

    sys.setprofile(noted)
    try:
        yield lambda: count
    finally:
        sys.setprofile(before)


if __name__ == "__main__":
    print(json.dumps({name: count() for name, count in PROXIES.items()}, indent=1))
