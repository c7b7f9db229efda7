"""Runs the layers of steps: decides on the next one whenever whoever executes them has room, and knows when a step is
over. Behind the same interface stand a device and the synthetic machine."""

import time
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sw.driver.queues.interrupt_wait import never
from sw.runtime.engine_sets import apart
from sw.runtime.layer_graph import LayerGraph
from sw.runtime.policies.contract import LayerCost
from sw.runtime.policies.idle_time import Idle
from sw.runtime.scheduler import Decision, LayerChain, LayerScheduler

Owner = TypeVar("Owner")
Layer = TypeVar("Layer")


class LayerExecutor(Protocol):
    """Executes layers that were decided on. When they load, compute and end it tells the scheduler and the
    :class:`LayerRunner`."""

    def now(self) -> float:
        """Return the time."""
        ...

    def room(self, chain: LayerChain) -> bool:
        """Return whether another layer may be decided on now, if it is one of ``chain``."""
        ...

    def think(self) -> None:
        """Let the time of a decision pass, in which several layers could be next."""
        ...

    def take(self, decision: Decision) -> None:
        """Take a layer that was decided on, behind those before it."""
        ...

    def push(self) -> None:
        """Begin with the layers that were taken, as far as there is room for them."""
        ...


@dataclass(eq=False)
class OpenStep(Generic[Owner, Layer]):
    """Is a step of ``owner``, the ``chain`` of its ``layers``, that has not ended. ``undecided`` of them are still to
    be decided on, ``running`` ones were."""

    owner: Owner
    chain: LayerChain
    layers: Sequence[Layer]
    undecided: int
    running: int = 0

    @property
    def left(self) -> int:
        """Return how many layers are still to end."""
        return self.undecided + self.running


class LayerRunner(Generic[Owner, Layer]):
    """Runs layers that ``scheduler`` chooses, ``per_decision`` at a time. ``seconds`` takes the wall time of decisions;
    ``steps`` are those that are not over, by the number of their chain."""

    def __init__(self, scheduler: LayerScheduler, seconds: MutableSequence[float], per_decision: int = 1) -> None:
        self.scheduler, self._seconds, self._per_decision = scheduler, seconds, per_decision
        self.steps: dict[int, OpenStep[Owner, Layer]] = {}

    def open(self, chain: LayerChain, owner: Owner, layers: Sequence[Layer], graph: LayerGraph | None = None) -> None:
        """Run the ``layers`` of ``chain`` from now on, for ``owner``."""
        self.steps[chain.number] = OpenStep(owner, chain, layers, len(layers))
        self.scheduler.open(chain, graph)

    def park(self, owner: Owner, now: float) -> None:
        """Decide on no layer of ``owner`` for now; those that were decided on are on no engine."""
        for step in self._of(owner):
            self.scheduler.park(step.chain, now)

    def unpark(self, owner: Owner, now: float) -> None:
        """Go on with ``owner``."""
        for step in self._of(owner):
            self.scheduler.unpark(step.chain, now)

    def _of(self, owner: Owner) -> list[OpenStep[Owner, Layer]]:
        return [step for step in self.steps.values() if step.owner is owner]

    def close(self, number: int) -> None:
        """Decide on no more layers of a step."""
        self.scheduler.cancel(number)
        self.steps[number].undecided = 0
        self._forget_over(number)

    def forget(self, owner: Owner) -> None:
        """Forget what there is of ``owner``, of which nothing is queued."""
        self.steps = {number: step for number, step in self.steps.items() if step.owner is not owner}

    def turn(self, executor: LayerExecutor, interrupted: Callable[[], bool] = never) -> None:
        """Decide on what ``executor`` has room for. Between two decisions it is asked whether the host was
        ``interrupted``; then the rest is for a later turn. Raises ``PolicyFailed``."""
        while (found := self._next(executor)) is not None and not interrupted():
            among, choices = found
            if choices > 1:
                executor.think()
            for _ in range(self._per_decision):
                among = [chain for chain in among if self.steps[chain.number].undecided]
                if among:
                    begin = time.perf_counter()
                    decision = self.scheduler.decide(executor.now(), among)
                    self._seconds.append(time.perf_counter() - begin)
                    self._take(executor, decision)
                    while self.scheduler.committed:
                        self._take(executor, self.scheduler.decide(executor.now()))
            executor.push()

    def _next(self, executor: LayerExecutor) -> tuple[list[LayerChain], int] | None:
        """Return chains that use the same engines and for which there is room, with how many layers of all chains there
        could be next; None if there is room for none."""
        for chains in apart(self.scheduler.open_chains, lambda chain: chain.engines):
            among = [chain for chain in chains if executor.room(chain)]
            if among:
                return among, sum(len(chain.candidates) for chain in chains)
        return None

    def _take(self, executor: LayerExecutor, decision: Decision | None) -> None:
        assert decision is not None
        step = self.steps[decision.chain.number]
        step.undecided, step.running = step.undecided - 1, step.running + 1
        executor.take(decision)

    def dropped(self, decision: Decision) -> None:
        """Note that a layer that was decided on will not run. Raises what a policy does that is told of it."""
        self._leave(decision)
        self.scheduler.dropped(decision)

    def ended(
        self, decision: Decision, time: float, *, load: float | None = None, compute: float | None = None
    ) -> bool:
        """Note that a layer has ended, as ``LayerScheduler.ended`` does; return whether its step is over."""
        self.scheduler.ended(decision, time, load=load, compute=compute)
        return self._leave(decision)

    def _leave(self, decision: Decision) -> bool:
        self.steps[decision.chain.number].running -= 1
        return self._forget_over(decision.chain.number)

    def _forget_over(self, number: int) -> bool:
        over = not self.steps[number].left
        if over:
            del self.steps[number]
        return over


class StepScheduler(LayerScheduler):
    """Gives steps whole, in the order in which they were opened. Where no two could be next, nothing is chosen, and
    nothing is forecast."""

    def __init__(self) -> None:
        self._open: dict[int, LayerChain] = {}

    def open(self, chain: LayerChain, graph: LayerGraph | None = None) -> None:
        """Give the step of ``chain`` from the next decision on."""
        self._open[chain.number] = chain

    def decide(self, now: float, among: Sequence[LayerChain] | None = None) -> Decision | None:
        """Return the next step as one layer, or None if all were given."""
        if not self._open:
            return None
        chain = self._open.pop(among[0].number if among else next(iter(self._open)))
        return Decision(chain, 0, 0, _NO_COST, (), _NOT_IDLE, now, 0, 1)

    def load_started(self, layer: Decision, time: float) -> None:
        """Note nothing, as of the next two."""

    def load_ended(self, layer: Decision, time: float, load: float | None = None) -> None:
        """Note nothing."""

    def started(self, layer: Decision, time: float) -> None:
        """Note nothing."""

    def ended(self, layer: Decision, time: float, *, load: float | None = None, compute: float | None = None) -> None:
        """Note nothing: there are no estimates to correct."""

    def dropped(self, layer: Decision) -> None:
        """Note nothing: no policy counts it."""


_NO_COST, _NOT_IDLE = LayerCost(0.0, 0.0), Idle(0.0, 0.0)
