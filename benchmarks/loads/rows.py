"""Rows of ``caesura bench loads``: what tenants of published loads get of the machine.

Small rows have the networks narrow and their images small; ``whole_`` rows have them as published, and take long. On
the fast model without data, but for the row that compares it with the RTL.
"""

from functools import cache, partial
from statistics import mean
from typing import Any

from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab
from benchmarks.loads import disb, interval, mixes, xrbench
from benchmarks.loads.load import Load, Published
from benchmarks.loads.serving import PERCENTILES, ServedLoad, Server
from hw.contract.params import SocParams

URGENT = Target(1.05, 1.02, "x", at_most=True)
KEPT = Target(90, 95)
REQUESTS = {"disb_a": 20, "disb_b": 20, "disb_c": 12, "disb_d": 4, "disb_e": 4, "disb_real": 12}
WHOLE_REQUESTS = 20
#: Loads in which urgent requests also wait for each other: compared with the same ones without best-effort tenants.
CROWDED = ("disb_d", "disb_e", "disb_real")
FULL = ("disb_b",)  #: loads in which urgent requests leave nothing to others
FRAMES = 12  #: of the tenant with the highest rate of XRBench
MIXES = 4  #: of PREMA
MOCA_REQUESTS = 4


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    rows = [_urgent_row(load) for load in disb.loads()]
    rows += [
        Figure(f"{load.name}_others_keep", KEPT, partial(_kept, load=load))
        for load in disb.loads()
        if load.name not in FULL
    ]
    late = Target(5, 0, "%", at_most=True)
    rows += [Figure(f"{load.name}_late", late, partial(_late, load=load)) for load in xrbench.loads()]
    rows += [
        Figure(f"prema_{what}", Target(1.0, aim, "x"), partial(_prema, what=what))
        for what, aim in mixes.PREMA.figures.items()
    ]
    rows += [
        Figure(f"moca_{what}", Target(1.0, aim, "x"), partial(_moca, what=what))
        for what, aim in mixes.MOCA.figures.items()
    ]
    rows.append(Figure("rtl_interval_error", Target(1.0, 0.5, "%", at_most=True), interval.measure))
    return [*rows, *(_urgent_row(load, whole=True) for load in disb.loads())]


def _urgent_row(load: Load, whole: bool = False) -> Figure:
    measure = _crowded if load.name in CROWDED else _urgent
    name = f"{'whole_' if whole else ''}{load.name}_urgent_p99"
    return Figure(name, URGENT, partial(measure, load=load, whole=whole), optional=whole)


@cache
def _server(params: SocParams, whole: bool) -> Server:
    return Server(params, whole=whole)


@cache
def _alone(params: SocParams, whole: bool, name: str) -> dict[str, float]:
    return _server(params, whole).alone(_loads()[name])


@cache
def _alone_on_the_machine(params: SocParams, whole: bool, name: str) -> dict[str, float]:
    return _server(params, whole).alone_on_the_machine(_loads()[name])


@cache
def _served(params: SocParams, whole: bool, name: str, requests: int, undisturbed: bool = False) -> ServedLoad:
    load, alone = _loads()[name], _alone(params, whole, name)
    return _server(params, whole).serve(load, alone, requests, undisturbed=undisturbed)


def _loads() -> dict[str, Load]:
    return {load.name: load for load in (*disb.loads(), *xrbench.loads())}


def _disb(lab: Lab, load: Load, whole: bool, undisturbed: bool = False) -> ServedLoad:
    requests = WHOLE_REQUESTS if whole else REQUESTS[load.name]
    return _served(lab.params, whole, load.name, requests, undisturbed)


def _urgent(lab: Lab, load: Load, whole: bool = False) -> Measured:
    """Return the 99th percentile of what urgent requests take, over what they take with nobody else on the device."""
    served, alone = _disb(lab, load, whole), _alone_on_the_machine(lab.params, whole, load.name)
    detail = served.to_dict()
    detail["urgent_against_alone"] = {f"p{p}": round(served.against_alone(p, alone), 4) for p in PERCENTILES}
    return Measured(served.against_alone(99, alone), True, detail)


def _crowded(lab: Lab, load: Load, whole: bool = False) -> Measured:
    """Return the 99th percentile of the cycles of urgent requests over the same without tenants of no claim. Both wait
    for other urgent requests."""
    served, undisturbed = (_disb(lab, load, whole, undisturbed) for undisturbed in (False, True))
    detail = served.to_dict()
    detail["urgent_cycles"] = {f"p{p}": round(served.cycles(p)) for p in PERCENTILES}
    detail["urgent_cycles_without_others"] = {f"p{p}": round(undisturbed.cycles(p)) for p in PERCENTILES}
    normalised = {f"p{p}": round(undisturbed.against_alone(p), 4) for p in PERCENTILES}
    detail["urgent_against_same_image_alone_without_others"] = normalised
    return Measured(served.cycles(99) / undisturbed.cycles(99), True, detail)


def _kept(lab: Lab, load: Load) -> Measured:
    """Return how much of the time that urgent requests leave the others use."""
    served = _disb(lab, load, whole=False)
    return Measured(served.kept, True, served.to_dict())


def _late(lab: Lab, load: Load) -> Measured:
    """Return the share of frames that ended after their period."""
    served = _served(lab.params, False, load.name, FRAMES)
    return Measured(100 * served.figures["sla_violation_rate"], True, served.to_dict())


_Gains = dict[str, float]


def _prema(lab: Lab, what: str) -> Measured:
    found = _prema_gains(lab.params)
    return Measured(found[what], True, {**_told(found, mixes.PREMA), "mixes": MIXES})


def _moca(lab: Lab, what: str) -> Measured:
    found = _moca_gains(lab.params)
    return Measured(found[what], True, _told(found, mixes.MOCA))


def _told(gains: _Gains, published: Published) -> dict[str, Any]:
    return {"gains": {name: round(value, 3) for name, value in gains.items()}, "published": published.to_dict()}


@cache
def _prema_gains(params: SocParams) -> _Gains:
    return _mean_gains(params, [mixes.prema(mix) for mix in range(MIXES)], 1)


@cache
def _moca_gains(params: SocParams) -> _Gains:
    return _mean_gains(params, [mixes.moca(letter, "medium") for letter in mixes.MOCA_SETS], MOCA_REQUESTS)


def _mean_gains(params: SocParams, loads: list[Load], requests: int) -> _Gains:
    gains = [_gains(params, load, requests) for load in loads]
    return {name: mean(one[name] for one in gains) for name in gains[0]}


def _gains(params: SocParams, load: Load, requests: int) -> _Gains:
    """Return the gains over first come, first served without preemption. ``sla``: of requests that were in time."""
    server = _server(params, False)
    alone = server.alone(load)
    served = server.serve(load, alone, requests), server.serve(load, alone, requests, preemptive=False, policy="fcfs")
    ours, theirs = (one.figures for one in served)
    by_priority = [one.fairness_by_priority for one in served]
    return {
        "antt": theirs["antt"] / ours["antt"],
        "stp": ours["stp"] / theirs["stp"],
        "fairness": ours["fairness"] / theirs["fairness"],
        "fairness_by_priority": by_priority[0] / by_priority[1],
        "sla": _in_time(ours) / max(_in_time(theirs), 1 / theirs["requests"]),
    }


def _in_time(found: dict[str, Any]) -> float:
    return 1 - float(found["sla_violation_rate"])
