"""The mixes of tasks of PREMA and of MoCA: networks that arrive at random, with priorities and times to keep.

Both are told from memory: what is said of them here has not been checked in the papers' text.
"""

import random

from benchmarks.loads.load import Every, Load, Published, Tenant

TASKS = 8  #: of a mix of PREMA
PREMA_NETWORKS = ("alexnet", "googlenet", "vgg16", "mobilenetv1")
PREMA_PRIORITIES = (1, 3, 9)
PREMA_SLACK = 4.0  #: times alone after which a task is late
PREMA = Published(
    "PREMA, HPCA 2020",
    {"antt": 7.8, "stp": 1.4, "sla": 4.8},
    "gains over first come, first served without preemption; its mixes have recurrent networks too, its policy is one "
    "of tokens and of estimates, its machine a systolic array of 128 x 128",
    checked=False,
)
MOCA_SETS = {
    "a": ("squeezenet", "mobilenetv1"),
    "b": ("googlenet", "alexnet", "resnet50"),
    "c": ("squeezenet", "mobilenetv1", "googlenet", "alexnet", "resnet50"),
}
MOCA_SERVICE = {"hard": 0.8, "medium": 1.0, "light": 1.2}
MOCA_SLACK = 3.0  #: times alone of medium service
MOCA = Published(
    "MoCA, HPCA 2023",
    {"sla": 1.8, "stp": 1.7, "fairness": 1.2, "fairness_by_priority": 1.2},
    "mean gains over prior sharing (its abstract), which is not ours; ours are over first come, first served without "
    "preemption. Its fairness weighs progress by priority (from memory): compare it with that of the same name. Its "
    "sets have YOLO and keyword networks too, its machine eight engines of 16 x 16",
    checked=False,
)


def prema(mix: int) -> Load:
    """Return mix number ``mix``: eight tasks, each of a network and a priority chosen at random."""
    rng = random.Random(f"prema {mix}")
    tenants = [
        Tenant(f"task{number}_{network}", (network,), Every(1.0, random=True), priority, slack=PREMA_SLACK)
        for number in range(TASKS)
        for network, priority in [(rng.choice(PREMA_NETWORKS), rng.choice(PREMA_PRIORITIES))]
    ]
    return Load(f"prema_{mix}", tuple(tenants), PREMA, demand=0.9)


def moca(letter: str, service: str) -> Load:
    """Return a set under a quality of service: requests of each network at random, a third of each priority."""
    slack = MOCA_SLACK * MOCA_SERVICE[service]
    tenants = [
        Tenant(f"{network}_{priority}", (network,), Every(1.0, random=True), priority, slack=slack)
        for network in MOCA_SETS[letter]
        for priority in (0, 1, 2)
    ]
    return Load(f"moca_{letter}_{service}", tuple(tenants), MOCA, demand=0.8)
