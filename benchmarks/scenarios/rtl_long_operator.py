"""One long operator among many short ones on four engines of the RTL: real models, arrivals and proportions as in
``examples/scenarios/long_operator.toml``."""

from pathlib import Path

import onnx
import onnxruntime

from benchmarks.workloads.cache import cached
from benchmarks.workloads.layers import Network
from benchmarks.workloads.registry import write_network
from caesura.scenario import Scenario, parse_scenario
from hw.contract.params import KIB

UNIT = 5000  #: cycles, of which the long operator takes about 60, each short one 1 to 3
HARDWARE = {"preset": "tiny", "params": {"engines": 4, "lv2_bytes": 256 * KIB}}
_VERSION = 1  #: raise it with every change to what is generated


def long_operator(rounds: int) -> Scenario:
    """Return a long operator every 90 units, ``rounds`` times, and a model of three short ones every 4 units on
    average.

    The short model is loaded often enough for what waits to be operators in queues, not requests for a free copy.
    """
    content: dict[str, object] = {
        "name": "one long operator",
        "time_unit": "cycles",
        "seed": 3,
        "machine": {**HARDWARE, "engines": 4, "placed": True},
        "models": {
            "long": {"workload": "conv_32x32x32_32_k3_s1_p1", "lv2_limit": 32 * KIB},
            "short": {"onnx": str(_short()), "lv2_limit": 16 * KIB, "copies": 14},
        },
        "streams": [
            {
                "name": "long",
                "stages": [{"model": "long"}],
                "arrivals": {"kind": "periodic", "period": 90 * UNIT, "count": rounds},
            },
            {
                "name": "short",
                "stages": [{"model": "short"}],
                "arrivals": {"kind": "poisson", "interval": 4 * UNIT, "count": 25 * rounds},
            },
        ],
    }
    return parse_scenario(content, "one long operator")


def _short() -> Path:
    """Return the operators of about 1, 3 and 2 units."""
    net = Network("short", (8, 28, 28), input="x")
    x = net.conv("first", net.input, 8, 3, 2, 1)
    x = net.conv("second", x, 16, 3, 1, 1)
    net.conv("third", x, 16, 3, 1, 1)
    parameters = (_VERSION, net, onnx.__version__, onnxruntime.__version__)
    return cached(net.name, parameters, lambda path: write_network(net, path))
