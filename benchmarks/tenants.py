"""``caesura bench tenants``: what tenants on engines of their own are to each other.

Whole networks, one on each engine, against what the longest takes alone; urgent requests on free engines and on
different ones; and four tenants on two clusters each, of whom one is preempted and one is killed, on the compiled RTL.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.workloads import workload
from caesura import Device, Image, Model, Options, Runtime, Sample, compile, random_samples
from hw.contract.params import SocParams, preset
from sim import DEFAULT_BACKEND
from sim.model import ModelBus
from sim.rtl import open_bus
from sw.runtime import Fleet, FleetRequest, Mechanism, Request, Situation

EIGHT = preset("base").replace(engines=8)
NETWORKS = (
    "squeezenet", "squeezenet1_0", "mobilenetv2", "inception", "densenet", "shufflenet", "nasnet", "random_wired",
)  # fmt: skip
POLICIES = ("idle_time", "idle_time_tolerant", "round_robin", "fcfs", "sjf")
PHASES = 48  #: arrivals of an urgent request while another runs


def figures() -> list[Figure]:
    """Return the rows, each on hardware of its own whatever preset was asked for."""
    return [
        Figure("eight_networks", Target(1.08, 1.03, "x", at_most=True), _eight_networks),
        Figure("eight_networks_of_best", Target(1.0, 1.0, "x", at_most=True), _of_best),
        Figure("urgent_on_free_engine", Target(900, 725, "cycles", at_most=True), _free_engine),
        Figure("two_urgent_overlap", Target(95, 99), _overlap),
        Figure("four_tenants_failures", Target(0, 0, "requests", at_most=True), _four_tenants),
        Figure("two_devices_in_time", Target(1.8, 1.95, "x"), _two_devices),
    ]


# -- a network on each engine --------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Together:
    ended: int  #: cycles from the arrival of all to the end of the last
    equal: bool  #: whether all outputs are those of the models alone


@dataclass(frozen=True)
class _Alone:
    outputs: Sample
    cycles: int
    bytes: int  #: of DRAM


class _Networks:
    """The networks, compiled for one engine and an eighth of LV2 each, and what each does alone."""

    def __init__(self) -> None:
        options = Options(lv2_limit=EIGHT.lv2_bytes // EIGHT.engines)
        self.images = [compile(workload(name), EIGHT, engines=1, options=options) for name in NETWORKS]
        self.samples = [random_samples(image, 1, 0)[0] for image in self.images]
        with Device(ModelBus(EIGHT)) as device:
            self.alone = [
                _alone(model, sample) for model, sample in zip(_loaded(device, self.images), self.samples, strict=True)
            ]

    @property
    def bound(self) -> float:
        """Return the cycles that no schedule can do without: of the longest alone, or of the memory."""
        moved = sum(alone.bytes for alone in self.alone) / EIGHT.dram_bytes_per_cycle
        return max(moved, *(alone.cycles for alone in self.alone))

    def together(self, policy: str) -> _Together:
        """Run one request of each at once."""
        with Device(ModelBus(EIGHT)) as device, Runtime(device, policy) as runtime:
            begin = device.bus.cycle
            models = _loaded(device, self.images)
            requests = [runtime.submit(model, sample) for model, sample in zip(models, self.samples, strict=True)]
            runtime.run_until_done()
            equal = all(_equal(r.result(), alone.outputs) for r, alone in zip(requests, self.alone, strict=True))
            return _Together(max(_end(request) for request in requests) - begin, equal)


@cache
def _networks() -> _Networks:
    return _Networks()


@cache
def _together(policy: str) -> _Together:
    return _networks().together(policy)


def _eight_networks(lab: Lab) -> Measured:
    """Return the cycles of eight networks side by side, over the bound."""
    found, bound = _together("idle_time"), _networks().bound
    alone = {name: one.cycles for name, one in zip(NETWORKS, _networks().alone, strict=True)}
    detail = {"measured_on": "model, base with 8 engines", "cycles": found.ended, "bound": round(bound), **alone}
    return Measured(found.ended / bound, found.equal, detail)


def _of_best(lab: Lab) -> Measured:
    """Return the cycles under ``idle_time`` over those under the best of all policies."""
    ended = {policy: _together(policy).ended for policy in POLICIES}
    equal = all(_together(policy).equal for policy in POLICIES)
    return Measured(ended["idle_time"] / min(ended.values()), equal, {"unit": "cycles", **ended})


# -- urgent requests -----------------------------------------------------------------------------------------
def _free_engine(lab: Lab) -> Measured:
    """Return the median of the cycles from the arrival of an urgent request for a free engine to its first body, while
    another engine is at work; nobody may be suspended."""
    params = preset("base")
    long, urgent = _pair(params)
    with Device(ModelBus(params)) as device:
        below, above = device.load(long, engines=[0]), device.load(urgent, engines=[1])
        samples = [random_samples(image, 1, 0)[0] for image in (long, urgent)]
        idle = _first(_served(device, [(above, samples[1], 1, 0)])[0])
        cycles = _alone(below, samples[0]).cycles
        waits, equal, suspended = [], True, 0
        for phase in range(PHASES):
            asked = [(below, samples[0], 0, 0), (above, samples[1], 1, cycles * phase // PHASES)]
            low, high = _served(device, asked)
            waits.append(_first(high))
            suspended += low.preempted
            equal &= high.error is None and low.error is None
    detail = {"on_an_idle_device": idle, "worst": max(waits), "suspended": suspended, "arrivals": PHASES}
    return Measured(float(np.median(waits)), equal and not suspended, detail)


def _overlap(lab: Lab) -> Measured:
    """Return the share of the shorter of two urgent requests, on two engines at work, in which both run."""
    params = preset("base")
    long, urgent = _pair(params)
    with Device(ModelBus(params)) as device:
        below = [device.load(long, engines=[engine]) for engine in range(2)]
        above = [device.load(urgent, engines=[engine]) for engine in range(2)]
        samples = [random_samples(image, 1, 0)[0] for image in (long, urgent)]
        at = _alone(below[0], samples[0]).cycles // 3
        low = [(model, samples[0], 0, 0) for model in below]
        requests = _served(device, [*low, *((model, samples[1], 1, at) for model in above)])
        spans = [(r.started or 0, _end(r)) for r in requests[2:]]
    both = min(end for _, end in spans) - max(begin for begin, _ in spans)
    shorter = min(end - begin for begin, end in spans)
    correct = all(request.error is None for request in requests) and all(r.preempted == 1 for r in requests[:2])
    return Measured(100 * max(0, both) / shorter, correct, {"cycles_of_both": both, "cycles_of_the_shorter": shorter})


def _pair(params: SocParams) -> tuple[Image, Image]:
    """A long model and an urgent one, of which four have windows in LV2."""
    options = Options(lv2_limit=params.lv2_bytes // 4)
    names = ("conv_64x56x56_64_k3_s1_p1", "conv_32x28x28_32_k3_s1_p1")
    long, urgent = (compile(workload(name), params, engines=1, options=options) for name in names)
    return long, urgent


# -- four tenants --------------------------------------------------------------------------------------------
def _four_tenants(lab: Lab) -> Measured:
    """Return how many requests fail or have wrong outputs, of four tenants on two clusters each: one is preempted and
    one killed, each for an urgent request on its clusters."""
    params = preset("cluster64")
    options = Options(lv2_limit=params.lv2_bytes // 8)
    names = ("conv_64x56x56_64_k3_s1_p1", "conv_32x28x28_32_k3_s1_p1")
    long, urgent = (compile(workload(name), params, engines=2, options=options) for name in names)
    choices = iter([Mechanism.DUMP, Mechanism.KILL])
    with Device(open_bus(params, DEFAULT_BACKEND)) as device:
        clusters = [(2 * number, 2 * number + 1) for number in range(params.engines // 2)]
        tenants = [device.load(long, engines=two, tenant=f"tenant {two[0] // 2}") for two in clusters]
        above = [device.load(urgent, engines=two, tenant="urgent") for two in clusters[:2]]
        samples = [random_samples(image, 1, 0)[0] for image in (long, urgent)]
        alone = [_alone(model, sample) for model, sample in ((tenants[0], samples[0]), (above[0], samples[1]))]
        at = alone[0].cycles // 2
        low = [(model, samples[0], 0, 0) for model in tenants]
        high = [(model, samples[1], 1, at + 4000 * i) for i, model in enumerate(above)]
        requests = _served(device, [*low, *high], lambda situation: next(choices), may_kill=True)
    wanted = [alone[0].outputs] * len(tenants) + [alone[1].outputs] * len(above)
    failed = sum(not _equal(r.outputs, right) for r, right in zip(requests, wanted, strict=True))
    touched = [request.preempted for request in requests]
    detail = {
        "measured_on": f"{DEFAULT_BACKEND}, cluster64", "requests": len(requests), "taken_off": touched,
        "started_over": [request.repeated for request in requests], "cycles_alone": alone[0].cycles,
    }  # fmt: skip
    dumped, killed = requests[0], requests[1]
    happened = touched == [1, 1, 0, 0, 0, 0] and (dumped.repeated, killed.repeated) == (0, 1)
    return Measured(float(failed), happened, detail)


# -- two devices ---------------------------------------------------------------------------------------------
_FIVE = ("vgg19_small", "resnet152_small", "densenet_small", "inception_v3_small", "bert_tiny")
_EACH = 20  #: requests of each


def _two_devices(lab: Lab) -> Measured:
    """Return what two devices have served by the time that the last request has arrived, over one device: five
    networks, each in even intervals, as in DISB-D; a request counts as long as it takes alone. All arrive within half
    the time in which one device serves them, if they are there at once: as much as two devices can do."""
    params = preset("base")
    options = Options(lv2_limit=params.lv2_bytes // len(_FIVE))
    images = [compile(workload(name), params, options=options) for name in _FIVE]
    samples = [random_samples(image, 1, 0)[0] for image in images]
    with Device(ModelBus(params)) as device:
        alone = [_alone(device.load(image), sample) for image, sample in zip(images, samples, strict=True)]
    at_once = [request for _, request in _on_fleet(params, 1, images, samples, 0)]
    window = max(_end_of(request) for request in at_once) / 2
    work, served, equal = [], [], True
    for count in (1, 2):
        asked = _on_fleet(params, count, images, samples, window)
        ended = [which for which, request in asked if _end_of(request) <= window]
        served.append(len(ended))
        work.append(sum(alone[which].cycles for which in ended))
        equal &= all(_equal(request.result(), alone[which].outputs) for which, request in asked)
    detail = {"measured_on": "model, base", "requests": len(at_once), "on_one": served[0], "on_two": served[1]}
    return Measured(work[1] / work[0], equal, detail)


def _on_fleet(
    params: SocParams, count: int, images: Sequence[Image], samples: Sequence[Sample], window: float
) -> list[tuple[int, FleetRequest]]:
    """Return all requests, with the numbers of their networks, once so many devices have served them. They arrive
    evenly within ``window`` cycles."""
    with ExitStack() as stack:
        fleet = Fleet([stack.enter_context(Device(ModelBus(params))) for _ in range(count)])
        models = [fleet.load(image) for image in images]
        asked = []
        for number in range(_EACH * len(images)):
            turn, which = divmod(number, len(images))
            arrival = round(window * (turn + which / len(images)) / _EACH)
            asked.append((which, fleet.submit(models[which], samples[which], arrival=arrival)))
        fleet.run_until_done()
        fleet.close()
    return asked


def _end_of(request: FleetRequest) -> int:
    assert request.ended is not None
    return request.ended


# -- what they stand on --------------------------------------------------------------------------------------
def _loaded(device: Device, images: Sequence[Image]) -> list[Model]:
    return [device.load(image, engines=[engine]) for engine, image in enumerate(images)]


def _alone(model: Model, sample: Sample) -> _Alone:
    outputs, stats = model.run(sample)
    return _Alone(outputs, stats.latency, sum(job.traffic.total.bytes for job in stats.jobs))


def _served(
    device: Device, asked: Sequence[tuple[Model, Sample, int, int]],
    rule: Callable[[Situation], Mechanism] = lambda situation: Mechanism.DUMP, may_kill: bool = False,
) -> list[Request]:  # fmt: skip
    """Serve requests (model, sample, priority, cycles from now to the arrival), and return them as they have ended."""
    with Runtime(device, preemptive=True, rule=rule, may_kill=may_kill) as runtime:
        now = device.bus.cycle
        requests = [
            runtime.submit(model, sample, priority=priority, arrival=now + after)
            for model, sample, priority, after in asked
        ]
        runtime.run_until_done()
    return requests


def _first(request: Request) -> int:
    """Return the cycles from the arrival of a request to its first body."""
    return min(result.start for result in request.results) - request.arrival


def _end(request: Request) -> int:
    assert request.ended is not None
    return request.ended


def _equal(found: Sample | None, right: Sample) -> bool:
    return found is not None and all(np.array_equal(found[name], right[name]) for name in right)
