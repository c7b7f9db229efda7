"""Makes a scenario of models alone: each has a stream that keeps one request of it open at any time."""

from collections.abc import Mapping

from caesura.scenario.arrivals import Closed
from caesura.scenario.model_spec import ModelSpec
from caesura.scenario.schema import MachineSpec, Scenario, StageSpec, Stream


def closed_loops(
    models: Mapping[str, ModelSpec], machine: MachineSpec | None = None, requests: int = 10, name: str = "closed loops"
) -> Scenario:
    """Return a scenario in which each of ``models`` is asked for ``requests`` inferences, one after the other, on
    ``machine`` (default: ``tiny``). Times are in cycles."""
    streams = [
        Stream(
            name=each, stages=[StageSpec(model=each)], arrivals=Closed(kind="closed", count=requests)
        )
        for each in models
    ]  # fmt: skip
    return Scenario(
        name=name, time_unit="cycles", machine=machine or MachineSpec(), models=dict(models), streams=streams
    )
