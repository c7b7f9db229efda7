"""Estimates what a choice between waiting, dumping and killing is made by, at the moment of a more urgent arrival."""

from collections.abc import Collection

from sw.driver import Device, LoadedModel
from sw.driver.preempt.reservation import most_dirty
from sw.runtime.preemption_mechanism import Situation

_SWITCH_ACCESSES = 40  #: register accesses of one switch, about; the driver stays awake, so no interrupt is paid for


def situation(
    device: Device,
    running: Collection[LoadedModel],
    *,
    remaining: float,
    elapsed: float,
    killable: bool = True,
    notice: float = 0.0,
) -> Situation:
    """Return the situation of ``running`` models, which would end by themselves in ``remaining`` cycles and have run
    for ``elapsed``; the more urgent request arrives in ``notice`` cycles."""
    params, costs = device.params, device.bus.costs
    intervals = [p.estimated_interval for model in running for p in model.image.meta.cancel_points]
    moved = min(sum(most_dirty(model) for model in running), params.lv2_bytes)
    return Situation(
        remaining=remaining,
        elapsed=elapsed,
        halt=sum(intervals) / len(intervals) / 2 if intervals else remaining,
        dump_bytes=moved,
        restore_bytes=moved,
        bandwidth=params.dram_bytes_per_cycle,
        switch=_SWITCH_ACCESSES * costs.register_access,
        killable=killable,
        notice=notice,
    )
