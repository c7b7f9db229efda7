"""The scenarios of XRBench: what a headset runs, at the rates of its sensors.

Rates and order are XRBench's. Networks are ours, of the kind that it names and of about that weight: each task below
says which stands for which.
"""

from benchmarks.loads.load import Every, Load, Published, Tenant

#: By task: hands, segmentation of the eye, gaze, depth, planes, spoken keyword, speech, segmentation, objects,
#: refinement of depth.
NETWORK = {
    "HT": "resnet50", "ES": "densenet", "GE": "mobilenetv2", "DE": "googlenet", "PD": "resnet152",
    "KD": "squeezenet", "ASR": "distilbert", "SS": "inception_v3", "OD": "mobilenetv2", "DR": "resnet50",
}  # fmt: skip
#: Frames a second of each task, or of several in a row. ``KD+ASR``: speech follows a share of the keywords.
SCENARIOS: dict[str, dict[str, float]] = {
    "vr_gaming": {"ES+GE": 60, "HT": 45},
    "ar_gaming": {"HT": 45, "DE": 30, "PD": 15},
    "ar_assistant": {"KD+ASR": 3, "SS": 10, "DE": 30, "PD": 15, "OD": 10},
    "outdoor": {"KD+ASR": 3, "SS": 10, "OD": 30},
    "social": {"ES+GE": 60, "DR": 30, "HT": 30},
}
SPOKEN = {"ar_assistant": 0.5, "outdoor": 0.2}  #: share of keywords that speech follows
#: Milliseconds alone on ``base`` with 90 % of its multipliers busy: with them, rates are the published ones there.
REFERENCE = {
    "resnet50": 8.87, "densenet": 0.40, "mobilenetv2": 0.65, "googlenet": 3.43, "resnet152": 24.99,
    "squeezenet": 0.76, "distilbert": 24.90, "inception_v3": 12.40,
}  # fmt: skip
DIFFERS = (
    "networks of the same kind instead of its own; its score is a product of four terms, ours is the share of frames "
    "that end after their period; its machines have 4,096 or 8,192 processing elements"
)


def loads() -> list[Load]:
    """Return the five scenarios. A frame is due before the next; more frames a second go first."""
    published = Published("XRBench, MLSys 2023", {"metric": "XRBench score"}, DIFFERS, checked=False)
    return [
        Load(f"xrbench_{name}", tuple(_tenants(name, rates)), published, REFERENCE) for name, rates in SCENARIOS.items()
    ]


def _tenants(scenario: str, rates: dict[str, float]) -> list[Tenant]:
    tenants = []
    for priority, (tasks, frames) in enumerate(sorted(rates.items(), key=lambda item: item[1])):
        period = 1000 / frames
        names = tasks.split("+")
        if tasks == "KD+ASR":
            spoken = Every(period, share=SPOKEN[scenario], choice="speech")
            silent = Every(period, share=SPOKEN[scenario], choice="speech", inverted=True)
            tenants.append(Tenant("KD", (NETWORK["KD"],), silent, priority, period))
            tenants.append(Tenant(tasks, tuple(NETWORK[name] for name in names), spoken, priority, period))
        else:
            tenants.append(Tenant(tasks, tuple(NETWORK[name] for name in names), Every(period), priority, period))
    return tenants
