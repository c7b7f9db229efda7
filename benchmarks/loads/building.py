"""Makes scenarios of loads: as a scenario file would say it, for one machine and its speed."""

import random
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from benchmarks.loads.load import Bursts, Every, Load, Loop, Tenant, rate
from caesura.scenario import Scenario, parse_scenario

MS = 1_000_000  #: cycles of a millisecond at 1 GHz
APART = 10**9  #: cycles between requests that are to meet nobody
#: Networks that stand for others in small loads: narrow, and of small images. Those without one keep their size.
SMALL = {"distilbert": "bert_tiny", "densenet": "densenet_small"}


def small(network: str) -> str:
    """Return the workload that stands for ``network`` in a small load."""
    return SMALL.get(network, f"{network}_small")


def one_by_one(load: Load, machine: Mapping[str, Any], *, whole: bool) -> Scenario:
    """Return a request of each tenant of ``load`` where no two meet."""
    streams = [
        _stream(tenant, {"kind": "trace", "times": [number * APART]}) for number, tenant in enumerate(load.tenants)
    ]
    return _scenario(load, machine, streams, whole=whole)


def scenario(
    load: Load, machine: Mapping[str, Any], alone: Mapping[str, float], requests: int, *, whole: bool, seed: int = 0
) -> Scenario:
    """Return ``load`` on a ``machine`` on which its tenants' requests take ``alone`` cycles.

    It lasts until the tenant with the most requests has sent ``requests`` of them.
    """
    stretched = MS * load.dilation(alone_of_networks(load, alone))
    window = requests / max((rate(tenant.pattern) for tenant in load.tenants), default=0) if _has_rates(load) else 0.0
    streams = []
    for tenant in load.tenants:
        arrivals = _arrivals(tenant, window, stretched, requests, f"{seed} {load.name}")
        if arrivals is not None:
            streams.append(_stream(tenant, arrivals, _deadline(tenant, alone[tenant.name], stretched)))
    return _scenario(load, machine, streams, whole=whole, seed=seed)


def without(scenario: Scenario, names: set[str]) -> Scenario:
    """Return the scenario without the streams of these ``names``; their models stay on the device."""
    kept = [stream for stream in scenario.streams if stream.name not in names]
    return scenario.model_copy(update={"streams": kept})


def alone_of_networks(load: Load, alone: Mapping[str, float]) -> dict[str, float]:
    """Return the milliseconds of each network alone, from the cycles of each tenant. Of tenants with several
    networks, each takes an equal part: rates demand their sum."""
    found: dict[str, float] = {}
    for tenant in load.tenants:
        if len(tenant.networks) == 1:
            found[tenant.networks[0]] = alone[tenant.name] / MS
    for tenant in load.tenants:
        unknown = [name for name in tenant.networks if name not in found]
        left = alone[tenant.name] / MS - sum(found.get(name, 0.0) for name in tenant.networks)
        found.update({name: max(0.0, left) / len(unknown) for name in unknown})
    return found


def _has_rates(load: Load) -> bool:
    return any(rate(tenant.pattern) for tenant in load.tenants)


def _arrivals(tenant: Tenant, window: float, stretched: float, requests: int, seed: str) -> dict[str, Any] | None:
    """Return arrivals as a scenario has them, or None where there are none. ``window`` in milliseconds."""
    pattern = tenant.pattern
    match pattern:
        case Loop():
            return {"kind": "closed", "count": requests} if pattern.counted else {"kind": "closed"}
        case Every() if pattern.share == 1 and not pattern.random:
            count = max(1, round(window / pattern.period))
            return {"kind": "periodic", "period": pattern.period * stretched, "count": count}
    name = pattern.choice if isinstance(pattern, Every) and pattern.choice else tenant.name
    drawn = _drawn(pattern, window, random.Random(f"{seed} {name}"))
    times = [round(time * stretched) for time in drawn]
    return {"kind": "trace", "times": times} if times else None


def _drawn(pattern: Every | Bursts, window: float, rng: random.Random) -> Iterator[float]:
    """Yield times of requests in milliseconds."""
    if isinstance(pattern, Bursts):
        yield from _bursts(pattern, window, rng)
        return
    count = max(1, round(window / pattern.period))
    if pattern.random:
        yield from accumulate(rng.expovariate(1 / pattern.period) for _ in range(count))
    else:
        for number in range(count):
            if (rng.random() < pattern.share) != pattern.inverted:
                yield number * pattern.period


def _bursts(pattern: Bursts, window: float, rng: random.Random) -> Iterator[float]:
    begin = rng.uniform(0, pattern.period)
    while begin < window:
        starts = [begin, begin + pattern.period / 2] if rng.random() < pattern.doubled else [begin]
        for start in starts:
            yield from accumulate(
                (rng.uniform(pattern.low, pattern.high) for _ in range(pattern.count - 1)), initial=start
            )
        begin += pattern.period + rng.uniform(-pattern.jitter, pattern.jitter)


def _deadline(tenant: Tenant, alone: float, stretched: float) -> float | None:
    if tenant.slack is not None:
        return tenant.slack * alone
    return None if tenant.deadline is None else tenant.deadline * stretched


def _stream(tenant: Tenant, arrivals: dict[str, Any], deadline: float | None = None) -> dict[str, Any]:
    stages = [{"model": _model(tenant, network)} for network in tenant.networks]
    return {
        "name": tenant.name, "stages": stages, "arrivals": arrivals, "priority": tenant.priority, "deadline": deadline
    }  # fmt: skip


def _model(tenant: Tenant, network: str) -> str:
    """Return the name of a tenant's own copy: nobody waits for a copy that somebody else has suspended."""
    return f"{tenant.name}.{network}"


def _scenario(
    load: Load, machine: Mapping[str, Any], streams: list[dict[str, Any]], *, whole: bool, seed: int = 0
) -> Scenario:
    models = {
        _model(tenant, network): {"workload": network if whole else small(network)}
        for tenant in load.tenants
        for network in tenant.networks
    }
    content = {
        "name": load.name, "time_unit": "cycles", "seed": seed, "machine": dict(machine), "models": models,
        "streams": streams,
    }  # fmt: skip
    return parse_scenario(content, load.name)
