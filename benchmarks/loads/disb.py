"""The loads of DISB, a benchmark of inference servings on GPUs: real-time clients beside best-effort ones."""

from collections.abc import Sequence
from typing import Any

from benchmarks.loads.load import Bursts, Every, Load, Loop, Pattern, Published, Tenant

NETWORKS = ("vgg19", "resnet152", "densenet201", "inception_v3", "distilbert")
#: Milliseconds of a request alone on its GPU under TensorRT, of the real-time clients of workload D.
ALONE = {"vgg19": 2.786, "resnet152": 4.192, "densenet201": 7.489, "inception_v3": 2.921, "distilbert": 1.190}
SLACK = 4.0  #: times alone after which a request is late, where there are deadlines
FIFTH = 50.0  #: milliseconds between 20 requests a second
#: The published trace lasts 38 s: these have its mean rates, bursts and doublings, not its very times.
TRACE: dict[str, Pattern] = {
    "resnet152": Bursts(100.0, jitter=15.0),
    "densenet201": Bursts(200.0, jitter=20.0, doubled=0.15),
    "vgg19": Bursts(200.0, count=4, low=3.0, high=15.0, jitter=20.0),
    "inception_v3": Bursts(100.0, jitter=15.0),
    "distilbert": Bursts(210.0, jitter=20.0),
}
DIFFERS = (
    "a GPU with TensorRT and no priorities, where clients share the GPU at the same time; batch 1, floating point; "
    "latencies there are means"
)


def loads() -> list[Load]:
    """Return A to E and the trace. B is a closed loop of both clients, as its file has it; its text has 220 requests a
    second."""
    hundred = _urgent("vgg19", Every(10.0))
    others = _best_effort(NETWORKS)
    return [
        _load("a", [hundred, *_best_effort(["resnet152"])], 2.975, 0.207),
        _load("b", [_urgent("vgg19", Loop(counted=True)), *_best_effort(["resnet152"])], 3.120, 0.318),
        _load("c", [hundred, *others], 5.616, 2.836),
        _load("d", [*(_urgent(name, Every(FIFTH)) for name in NETWORKS), *others], 27.707, 23.991),
        _load("e", [*(_urgent(name, Every(FIFTH, random=True)) for name in NETWORKS), *others], 26.812, 23.097),
        _load("real", [*(_urgent(name, TRACE[name]) for name in NETWORKS), *others], 27.026, 23.254),
    ]


def for_devices(count: int) -> Load:
    """Return the real-time clients of E, each with a deadline, at rates that demand 90 % of ``count`` devices: fewer
    cannot serve all in time."""
    tenants = [Tenant(f"{name}_rt", (name,), Every(FIFTH, random=True), slack=SLACK) for name in NETWORKS]
    published = Published("DISB", {}, "rates are ours, and so are the deadlines", checked=True)
    return Load(f"disb_for_{count}", tuple(tenants), published, demand=0.9 * count, policy="deadline")


def _load(name: str, tenants: Sequence[Tenant], latency: float, increase: float) -> Load:
    figures: dict[str, Any] = {"latency_ms": latency, "against_alone": round(latency / (latency - increase), 3)}
    return Load(f"disb_{name}", tuple(tenants), Published("DISB, results of TensorRT", figures, DIFFERS), ALONE)


def _urgent(network: str, pattern: Pattern) -> Tenant:
    return Tenant(f"{network}_rt", (network,), pattern, priority=1)


def _best_effort(networks: Sequence[str]) -> list[Tenant]:
    return [Tenant(f"{network}_be", (network,), Loop()) for network in networks]
