"""A scenario of two streams of the digits network on preset ``tiny``."""

from copy import deepcopy
from pathlib import Path

from caesura.scenario.schema import Scenario, parse_scenario

DIGITS = str(Path("examples/digits/digits.onnx").resolve())


def content(**changes):
    """The content of its file. ``changes``: keys of the urgent stream, or of what a dotted name such as
    ``machine__preset`` stands for."""
    found = {
        "name": "two digits",
        "time_unit": "cycles",
        "machine": {"preset": "tiny", "preemption": {}},
        "certificate": {},
        "models": {
            "long": {"onnx": DIGITS, "engines": [0], "options": {"cancel_interval": 500}},
            "short": {"onnx": DIGITS, "engines": [0]},
        },
        "streams": [
            {
                "name": "urgent", "stages": [{"model": "short"}], "priority": 1, "deadline": 90_000, "promise": "hard",
                "arrivals": {"kind": "sporadic", "period": 150_000, "jitter": 500},
            },
            {
                "name": "steady", "stages": [{"model": "long"}], "deadline": 200_000, "promise": "hard",
                "arrivals": {"kind": "periodic", "period": 300_000, "count": 5},
            },
        ],
    }  # fmt: skip
    for name, value in changes.items():
        *above, last = name.split("__")
        place = found if above else found["streams"][0]
        for part in above:
            place = place[int(part) if part.isdigit() else part]
        place[last] = deepcopy(value)
    return found


def scenario(**changes) -> Scenario:
    return parse_scenario(content(**changes), "two_digits.toml")
