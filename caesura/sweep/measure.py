"""Runs one point of a sweep in a process of its own, on this computer or another."""

import tempfile
from pathlib import Path
from typing import Any

from caesura import api
from caesura.samples import random_samples
from caesura.scenario.runner import run_scenario
from caesura.sweep.front import area
from caesura.sweep.spec import Point
from compiler import CompileError, OpenDimension, UnsupportedModel

#: Figures of a scenario's report that a table shows.
SCENARIO_FIGURES = (
    "antt", "stp", "fairness", "sla_violation_rate", "compute_utilisation", "access_utilisation", "preemptions",
    "makespan",
)  # fmt: skip


def measure(point: Point, content: bytes) -> dict[str, Any]:
    """Return the figures of ``point`` by name, the same each time; ``content`` is that of its model's file. What a user
    can cause, such as a model that does not fit, is given as ``error``."""
    try:
        return _model(point, content) if point.model else _scenario(point)
    except UnsupportedModel as error:
        return {"error": error.told("fallback = true in the sweep's file")}
    except OpenDimension as error:
        return {"error": error.told(None)}
    except (ValueError, RuntimeError) as error:  # of compiler, parameters, driver, scenario
        return {"error": str(error)}


def _model(point: Point, content: bytes) -> dict[str, Any]:
    assert point.params is not None and point.model is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / point.model.name
        path.write_bytes(content)
        try:
            image = api.compile(
                path, point.params, fallback=point.fallback, options=api.options_of(dict(point.options)), jobs=1
            )
        except (UnsupportedModel, OpenDimension):
            raise
        except CompileError as error:  # it names the copy of the model
            raise CompileError(str(error).replace(str(path), point.model.name)) from None
    with api.open(point.params, point.backend) as device:
        _, stats = device.load(image).run(random_samples(image, 1, 0)[0])
    moved = [layer.traffic for layer in stats.layers if layer.traffic]
    return {
        "cycles": stats.cycles,
        "latency_cycles": stats.latency,
        "macs": stats.macs,
        "utilisation": round(stats.utilisation, 6),
        "dram_read_bytes": sum(one.ahead.bytes + one.loads.bytes for one in moved),
        "dram_written_bytes": sum(one.stores.bytes for one in moved),
        "lv2_used_bytes": image.meta.lv2_bytes,
        "onchip_bytes": point.params.onchip_bytes,
        "macs_per_cycle": point.params.macs,
        "dram_bytes_per_cycle": point.params.dram_bytes_per_cycle,
        "area": area(point.params.onchip_bytes, point.params.macs),
    }


def _scenario(point: Point) -> dict[str, Any]:
    assert point.scenario is not None
    changes = []
    if point.params is not None:
        changes = [f"{name}={value}" for name, value in point.params.to_dict().items() if name != "name"]
    result = run_scenario(
        point.scenario, point.policy, point.backend, placement=point.placement, changes=changes, keep_outputs=False
    )
    return {name: result[name] for name in SCENARIO_FIGURES}
