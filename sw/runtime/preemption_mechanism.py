"""Decides what to do with a running task when a more urgent one arrives: wait for it, dump it, or kill it and run it
again."""

import enum
from collections.abc import Collection
from dataclasses import dataclass

from sw.driver import Device, LoadedModel
from sw.runtime.next_stop import displaced, next_stop, usual_stop


class Mechanism(enum.Enum):
    """Names the ways to make an engine free."""

    WAIT = "wait"  #: until the running request has ended
    DUMP = "dump"  #: suspend it at its next cancellation point and continue it later
    KILL = "kill"  #: reset its engines; it runs again from its start


@dataclass(frozen=True)
class Situation:
    """Holds estimates in cycles and bytes at the moment of the arrival."""

    remaining: float  #: until the running request ends by itself
    elapsed: float  #: it has run so far: lost if it is killed
    halt: float  #: until its next cancellation point
    dump_bytes: float
    restore_bytes: float
    bandwidth: float  #: bytes of DRAM per cycle
    switch: float  #: what the host does for one switch, there or back
    killable: bool = True
    notice: float = 0.0  #: until the urgent request arrives, if that is known ahead


def costs(now: Situation, urgency: float) -> dict[Mechanism, float]:
    """Return the cost of each mechanism in cycles: the delay of the urgent request times ``urgency``, plus the work
    that the choice adds. The dump is left out if dump and restore would cost more than the wait that they save."""
    dump, restore = now.dump_bytes / now.bandwidth, now.restore_bytes / now.bandwidth

    def delay(until: float) -> float:
        return max(0.0, until - now.notice)

    dumped, work = delay(now.halt + now.switch + dump), dump + restore + 2 * now.switch
    result = {Mechanism.WAIT: urgency * delay(now.remaining)}
    if work <= delay(now.remaining) - dumped:
        result[Mechanism.DUMP] = urgency * dumped + work
    if now.killable:
        result[Mechanism.KILL] = urgency * delay(now.switch) + now.elapsed
    return result


def choose(now: Situation, urgency: float = 4.0, allowed: Collection[Mechanism] = tuple(Mechanism)) -> Mechanism:
    """Return the cheapest choice that is ``allowed``; on a tie the one that disturbs least. ``urgency`` is how much a
    cycle of delay of the urgent request weighs against a cycle of the machine. Where none that is allowed pays, it is
    the first of them."""
    priced = {choice: cost for choice, cost in costs(now, urgency).items() if choice in allowed}
    return min(priced, key=lambda choice: priced[choice], default=next(iter(allowed)))


_SWITCH_ACCESSES = 40  #: register accesses of one switch, about; the driver stays awake, so no interrupt is paid for


def situation(
    device: Device,
    running: Collection[LoadedModel],
    incoming: LoadedModel,
    beside: Collection[LoadedModel] = (),
    *,
    remaining: float,
    elapsed: float,
    killable: bool = True,
    notice: float = 0.0,
    later: bool = False,
) -> Situation:
    """Return the situation of ``running`` models in the way of ``incoming``, which would end by themselves in
    ``remaining`` cycles and have run for ``elapsed``; those ``beside`` stay. The more urgent request arrives in
    ``notice`` cycles. The pause would be sent now, or ``later``, when engines stand elsewhere."""
    params, costs = device.params, device.bus.costs
    foresee = usual_stop if later else next_stop
    stops = [stop for queue in device.engines if (stop := foresee(queue, running)) is not None]
    taken = sum(end - at for model in beside for at, end in model.windows())
    moved = displaced(stops, incoming, params.lv2_bytes - taken)
    return Situation(
        remaining=remaining,
        elapsed=elapsed,
        halt=max((stop.cycles for stop in stops), default=0.0),
        dump_bytes=moved,
        restore_bytes=moved,
        bandwidth=params.dram_bytes_per_cycle,
        switch=_SWITCH_ACCESSES * costs.register_access,
        killable=killable,
        notice=notice,
    )
