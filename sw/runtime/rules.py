"""Says how a run time decides: its policies, and how much is decided on at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sw.driver import Device, DriverError, LoadedModel
from sw.driver.models.engine_choice import check_engines
from sw.runtime.device_queues import queue_times
from sw.runtime.job_groups import JobGroup, whole_step
from sw.runtime.policies import OrderChoice, OrderPolicy, PlacementChoice, PlacementPolicy, order_maker, placement_maker
from sw.runtime.policies.placement import LiveQueueTime, QueueTime
from sw.runtime.policies.request_order import Fcfs
from sw.runtime.request import Request

_AHEAD = 4  #: groups for each engine that a session has queued: so many that none waits for the host


@dataclass(frozen=True)
class Rules:
    """Holds the rules of a run time. ``order`` and ``placement`` make policies. ``placed``: groups go to the engine
    that the placement policy names, otherwise every group runs on all engines. ``ahead``: groups that may be queued and
    not have begun to compute. ``at_arrival``: decide for all groups of a request at once. ``per_decision``: groups that
    are decided on at a time. ``preemptive``: the most urgent requests suspend all others; ``may_kill``: they may be
    stopped and started over. ``whole``: steps are queued whole, without decisions, and waited for, up to ``limit``
    cycles each."""

    order: Callable[[], OrderPolicy]
    placement: Callable[[], PlacementPolicy]
    placed: bool
    ahead: int
    at_arrival: bool
    per_decision: int = 1
    preemptive: bool = False
    may_kill: bool = False
    whole: bool = False
    limit: int | None = None

    @classmethod
    def chosen(
        cls,
        device: Device,
        policy: OrderChoice,
        placement: PlacementChoice | None,
        *,
        placed: bool,
        preemptive: bool,
        may_kill: bool,
        ahead: int | None,
        at_arrival: bool,
        per_decision: int,
        initial_waits: Sequence[float] | None,
        decay: bool,
    ) -> "Rules":
        """Return the rules that the user of ``Runtime`` asked for; raises ``ValueError`` for what cannot be."""
        if ahead is not None and ahead < 1:
            raise ValueError(f"ahead must be at least 1 layer, not {ahead}")
        if per_decision < 1:
            raise ValueError(f"layers_per_decision must be at least 1, not {per_decision}")
        if not placed and (placement is not None or initial_waits is not None):
            raise ValueError(
                "placement and initial_waits choose among queues, but layers run on all engines of their model: "
                "pass placed=True, or leave them out"
            )
        make_order = order_maker(policy)  # what is no policy is told now
        several = placed and device.params.engines > 1
        waits = list(initial_waits or [0.0] * device.params.engines) if several else [0.0]
        since = [device.bus.cycle] if decay and several else []
        make = placement_maker("queue_time" if placement is None else placement)
        make(waits, *since)
        slots = device.params.job_slots
        return cls(
            make_order, lambda: make(waits, *since), several, ahead or slots, at_arrival, per_decision, preemptive,
            may_kill,
        )  # fmt: skip

    @classmethod
    def of_whole_steps(cls, device: Device, model: LoadedModel, limit: int | None) -> "Rules":
        """Return the rules for one inference of ``model`` that has no other beside it. Layers of a placed model go each
        where the expected queue time is smallest when its inputs exist (**Queue-time balancing**), a few ahead of what
        runs, by the queues of the device as they are."""
        placed = model.placed
        return cls(
            Fcfs, lambda: _live_queues(device, model) if placed else QueueTime([0.0]), placed,
            _AHEAD * len(model.engines), at_arrival=not placed, whole=True, limit=limit,
        )  # fmt: skip

    def groups(self, request: Request) -> list[JobGroup]:
        """Return what is queued at a time of the current step of ``request``."""
        whole = self.whole and not self.placed
        return [whole_step(request.steps[request.step])] if whole else request.groups

    def engines_for(self, device: Device, model: LoadedModel, engines: Sequence[int] | None) -> Sequence[int] | None:
        """Return ``engines``, if ``model`` can run on them under these rules; otherwise raises as
        ``Runtime.submit``."""
        if self.whole:
            return engines
        if engines is not None:
            if self.placed:
                raise ValueError(f"engines={list(engines)}: this run time places each layer; open it with placed=False")
            engines = check_engines(model.image, engines, device.params.engines)
        if self.placed:
            device.chain(model)
            if model.placed and set(model.engines) != set(range(device.params.engines)):
                raise DriverError(
                    f"model {model.name!r} may be placed on engines {list(model.engines)} only, and this run time "
                    f"places on all {device.params.engines}: compile it for all of them"
                )
        return engines


def _live_queues(device: Device, model: LoadedModel) -> LiveQueueTime:
    """Return the queues of the engines of ``model``: what is in them now is an initial wait, which passes."""
    return LiveQueueTime(queue_times(device, model.engines), device.bus.cycle)
