"""What benches cost, counted instead of timed: cheap figures that are the same on every machine.

A bench takes minutes, and its seconds depend on the machine. Its proxy does a little of the same work and counts it, so
that the ordinary tests see a change that makes it cost twice as much: :data:`PROXIES`, by bench, and for the campaigns
of ``caesura bench trust``. ``benchmarks/ceilings.json`` says how much each count may be at most and at least: less
would mean that it counts nothing any more. No command writes that file: whoever raises a ceiling says why.

``python -m benchmarks.proxies`` prints all counts as JSON.
"""

import json
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable

import caesura
from benchmarks import decisions, kernels_cases
from benchmarks.counting import (
    ROOT,
    SEED,
    TINY,
    TWO,
    Counts,
    calls_of,
    host_work,
    inputs,
    planned,
    python_calls,
    resnet,
    small,
)
from benchmarks.lab import ALONE
from benchmarks.loads import building, disb
from benchmarks.loads.load import Load
from benchmarks.trust.program_campaign import ProgramCampaign
from benchmarks.workloads import workload
from benchmarks.workloads.exported import networks as exported
from compiler import DynamicDimension, Options, compile_model, compile_range, import_model, memory_study
from hw import Soc
from hw.contract.isa import INSN_BYTES
from hw.contract.params import preset
from hw.image import Image, KernelAttributes
from sim.cost import DecodedCode, forget_decoded
from sim.model import ModelBus
from sim.rtl import SimTop, native
from sw.runtime import Mechanism, Runtime

_LIMIT = 100_000_000
_REQUESTS = 24


def _modelspeed() -> Counts:
    """Timing of a network of many jobs, twice; each has a code limit of its own."""
    image, decoded = resnet(), 0

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
            planned() as events,
            calls_of(DecodedCode, "__init__", told=noted),
            python_calls("sim") as calls,
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


def _cycles(image: Image) -> int:
    """An inference on the fast model without data."""
    with ModelBus(image.params, data=False) as bus, caesura.Device(bus) as device:
        model = device.driver.load(image)
        begin = bus.cycle
        device.driver.begin(model, _LIMIT)
        device.driver.collect(device.driver.submit(model, range(len(image.meta.jobs)), limit=_LIMIT), _LIMIT)
        return bus.cycle - begin


def _utilisation() -> Counts:
    """Compilation of the same network, and its cycles."""
    image = resnet()
    cycles = _cycles(image)
    return {"instructions": len(image.code) // INSN_BYTES, "bytes of weights": len(image.weights), "cycles": cycles}


def _order() -> Counts:
    """The compiler's calls for a network with branches, those of the order search apart."""
    with python_calls("compiler/plan/order") as search, python_calls("compiler", "sim") as calls:
        image = compile_model(small("squeezenet_small"), TINY, jobs=1, options=ALONE, cache=False)
    return {"calls of the search": search(), "calls of the compiler": calls(), "jobs": len(image.meta.jobs)}


def _memory() -> Counts:
    """What a small network needs of LV2, by order of its layers."""
    with python_calls("compiler/plan/order") as search, python_calls("compiler") as calls:
        study = memory_study(import_model(workload("nasnet_small")), TINY)
    assert study.least.lv2 is not None
    return {
        "calls of the search": search(), "calls of the compiler": calls(), "bytes alive": study.least.peak,
        "least LV2": study.least.lv2,
    }  # fmt: skip


def _preemption() -> Counts:
    """Urgent requests of one model while another runs."""
    low, urgent = (compile_model(small(name), TINY, jobs=1, options=ALONE) for name in ("squeezenet_small", "digits"))
    with ModelBus(TINY) as bus, caesura.Device(bus) as device:
        driver = device.driver
        runtime = Runtime(driver, preemptive=True, rule=lambda situation: Mechanism.DUMP, history=None)
        first, second = (driver.load(image) for image in (low, urgent))
        with host_work() as counts:
            request = runtime.submit(first, inputs(low))
            for after in (5_000, 15_000, 25_000):
                runtime.submit(second, inputs(urgent), priority=1, arrival=bus.cycle + after)
            runtime.run_until_done()
        request.result()
        return counts() | {"preemptions": request.preempted, "cycles": bus.cycle}


def _scheduling() -> Counts:
    """Many requests at once, and the decisions of policies."""
    image = compile_model(small("digits"), TINY, jobs=1, options=ALONE)
    with ModelBus(TINY) as bus, caesura.Device(bus) as device:
        runtime = Runtime(device.driver, history=None)
        model = device.driver.load(image)
        with host_work() as counts:
            requests = [runtime.submit(model, inputs(image)) for _ in range(_REQUESTS)]
            runtime.run_until_done()
        for request in requests:
            request.result()
    with python_calls("sw/runtime") as deciding:
        decisions.layer_decision(8, 4, 1)
        decisions.placement(16, 1)
    return counts() | {"requests": _REQUESTS, "calls of decisions": deciding()}


def _tenants() -> Counts:
    """Two models on engines of their own, and an urgent request for one of these."""
    image = compile_model(small("digits"), TWO, engines=1, jobs=1, options=Options(lv2_limit=TWO.lv2_bytes // 4))
    with ModelBus(TWO) as bus, caesura.Device(bus) as device:
        runtime = Runtime(device.driver, preemptive=True, rule=lambda situation: Mechanism.DUMP, history=None)
        first, second, urgent = (device.driver.load(image, engines=[engine]) for engine in (0, 1, 1))
        with host_work() as counts:
            requests = [runtime.submit(model, inputs(image)) for model in (first, second)]
            requests.append(runtime.submit(urgent, inputs(image), priority=1, arrival=bus.cycle + 3_000))
            runtime.run_until_done()
        for request in requests:
            request.result()
        return counts() | {"preemptions": runtime.switches, "cycles": bus.cycle}


def _loads() -> Counts:
    """Scenarios of all loads of one kind, without running them."""
    found = disb.loads()
    with python_calls("benchmarks/loads", "caesura/scenario") as calls:
        made = [building.scenario(load, {"preset": "base"}, _alone_in(load), 20, whole=False) for load in found]
    return {"loads": len(found), "streams": sum(len(one.streams) for one in made), "calls": calls()}


def _alone_in(load: Load) -> dict[str, float]:
    return {tenant.name: 100_000.0 for tenant in load.tenants}


def _accuracy() -> Counts:
    """A recorded run of the model, with data."""
    image = compile_model(small("digits"), TINY, jobs=1, options=ALONE)
    with ModelBus(TINY) as bus, caesura.Device(bus) as device:
        bus.record()
        model = device.load(image)
        with planned() as events, python_calls("sim/functional") as calls:
            model.run(inputs(image))
        runs = len(bus.run_table)
    return {"instructions recorded": runs, "events": events(), "calls of units": calls()}


def _simspeed() -> Counts:
    """The netlist of a machine as the native simulator has it: its evaluations, and its compiled files."""
    files = native.generate(SimTop(TINY, Soc(TINY)))
    code = [text for name, text in files.items() if name.endswith(".c")]
    assignments = sum(text.count(" = ") for text in files.values())
    return {"files compiled": len(code), "assignments": assignments, "kilobytes of C": sum(map(len, code)) >> 10}


def _kernels() -> Counts:
    """Look-ups in a large library, and a range kernel of a few lengths."""
    library, demands = kernels_cases.mixed_library()
    rng = random.Random(SEED)
    asked = [(rng.choice(demands), rng.randint(1, 128)) for _ in range(200)]
    with python_calls("sw/kernels", "hw/contract", "hw/image") as looked:
        found = sum(library.find(*one) is not None for one in asked)
    compiled: list[int] = []
    dimension, lengths = DynamicDimension.of(kernels_cases.same_network()), range(16, 22)
    attributes = KernelAttributes.of({"model": dimension.model}, "length", f"{lengths[0]}..{lengths[-1]}")
    with python_calls("compiler") as calls:
        kernel = compile_range(
            dimension, TINY, lengths, attributes, ALONE, told=lambda length, own: compiled.append(length)
        )
    return {
        "found": found, "calls of look-ups": looked(), "lengths compiled": len(compiled),
        "calls of the compiler": calls(), "bytes of the range kernel": len(kernel.to_bytes()),
    }  # fmt: skip


def _attention() -> Counts:
    """A block of attention, and its cycles."""
    with python_calls("compiler") as calls:
        image = compile_model(workload("attention_2x16_32"), TINY, jobs=1, options=ALONE, cache=False)
    with ModelBus(TINY) as bus, caesura.Device(bus) as device:
        _, stats = device.load(image).run(inputs(image))
    return {
        "instructions": len(image.code) // INSN_BYTES, "jobs": len(image.meta.jobs), "cycles": stats.cycles,
        "calls of the compiler": calls(),
    }  # fmt: skip


def _networks() -> Counts:
    """The graph of an exported network, and a small one compiled and run."""
    with python_calls("benchmarks/workloads/exported") as built:
        graph, _ = exported.NETWORKS["mnasnet1_0"].graph(SEED)
    with python_calls("compiler", "sim") as calls:
        image = compile_model(workload("tcn_24"), TINY, jobs=1, options=ALONE, cache=False)
    with ModelBus(TINY) as bus, caesura.Device(bus) as device:
        _, stats = device.load(image).run(inputs(image))
    return {
        "parameters": graph.parameters, "calls of the builder": built(), "calls of the compiler": calls(),
        "jobs": len(image.meta.jobs), "cycles": stats.cycles,
    }  # fmt: skip


def _language() -> Counts:
    """A layer of a decoder for one token, and its cycles."""
    with python_calls("compiler") as calls:
        image = compile_model(workload("linear_stories15m_1"), preset("base"), jobs=1, options=ALONE, cache=False)
    cycles = _cycles(image)
    return {
        "instructions": len(image.code) // INSN_BYTES, "bytes of weights": len(image.weights),
        "jobs": len(image.meta.jobs), "cycles": cycles, "calls of the compiler": calls(),
    }  # fmt: skip


def _everyday() -> Counts:
    """What the command line imports before it knows what is asked, and the first network of a new user."""
    program = "import sys, caesura.cli; print(sum(name.partition('.')[0] in sys.argv for name in sys.modules))"
    told = subprocess.run(
        [sys.executable, "-c", program, "caesura", "compiler", "sw", "sim", "hw"], capture_output=True, text=True,
        check=True, cwd=ROOT,
    )  # fmt: skip
    with python_calls("caesura", "compiler") as calls:
        image = compile_model(small("digits"), TINY, jobs=1, cache=False)
    with ModelBus(TINY) as bus, caesura.Device(bus) as device:
        _, stats = device.load(image).run(inputs(image))
    return {"modules": int(told.stdout), "calls of the compiler": calls(), "cycles": stats.cycles}


def _trust() -> Counts:
    """A round of two campaigns on the model."""
    counts = {}
    for hostile in (False, True):
        name = "hostile" if hostile else "differential"
        campaign = ProgramCampaign("model", hostile=hostile)
        tracemalloc.start()
        with planned() as events, python_calls("sim", "benchmarks") as calls:
            campaign.round(SEED)
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
    "networks": _networks,
    "language": _language,
    "memory": _memory,
    "everyday": _everyday,
    "trust": _trust,
}


if __name__ == "__main__":
    print(json.dumps({name: count() for name, count in PROXIES.items()}, indent=1))
