"""Which steps have ended before another begins, and so which buffers never live at the same time.

In a chain every step waits for the one before it. The steps of a *placed* model, layers and regions, wait for those
that they read alone, so two branches may run side by side, and what one of them is done with the other may still need.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from typing import Protocol

import numpy as np
import numpy.typing as npt

from compiler import ir
from compiler.plan.layers.flow import step_flow
from compiler.plan.layers.step import ModelStep


class Lived(Protocol):
    """Is a buffer as its life is seen: the numbers of the layers that write or read it."""

    @property
    def users(self) -> Set[int]:
        """Not empty."""


class LayerOrder(ABC):
    """Says in which order layers, given by their numbers, can run."""

    in_turn = False  #: whether they run one after the other, as they are numbered

    @abstractmethod
    def apart(self, a: Lived, b: Lived) -> bool:
        """Return whether two buffers never live at the same time: all layers that use one end before any that uses the
        other begins."""

    @abstractmethod
    def together(self, buffers: Sequence[Lived]) -> npt.NDArray[np.bool_]:
        """Return for each two buffers whether they may live at the same time: the opposite of :meth:`apart`."""

    @abstractmethod
    def alive(self, buffer: Lived, layer: int) -> bool:
        """Return whether ``buffer`` may hold data while ``layer`` runs."""

    @abstractmethod
    def first(self, buffer: Lived, layer: int) -> bool:
        """Return whether ``layer`` uses ``buffer``, and all others that do begin when it has ended."""

    @abstractmethod
    def last(self, buffer: Lived, layer: int) -> bool:
        """Return whether ``layer`` uses ``buffer``, and all others that do have ended when it begins."""


class Chain(LayerOrder):
    """Layers run one after the other."""

    in_turn = True

    def apart(self, a: Lived, b: Lived) -> bool:
        return max(a.users) < min(b.users) or max(b.users) < min(a.users)

    def together(self, buffers: Sequence[Lived]) -> npt.NDArray[np.bool_]:
        first = np.array([min(one.users) for one in buffers], np.int64)
        last = np.array([max(one.users) for one in buffers], np.int64)
        return (first[:, None] <= last) & (first <= last[:, None])

    def alive(self, buffer: Lived, layer: int) -> bool:
        return min(buffer.users) <= layer <= max(buffer.users)

    def first(self, buffer: Lived, layer: int) -> bool:
        return min(buffer.users) == layer

    def last(self, buffer: Lived, layer: int) -> bool:
        return max(buffer.users) == layer


class AnyOrder(LayerOrder):
    """Nothing is known of the order: any two buffers may live at the same time."""

    def apart(self, a: Lived, b: Lived) -> bool:
        return False

    def together(self, buffers: Sequence[Lived]) -> npt.NDArray[np.bool_]:
        return np.ones((len(buffers), len(buffers)), np.bool_)

    def alive(self, buffer: Lived, layer: int) -> bool:
        return True

    def first(self, buffer: Lived, layer: int) -> bool:
        return False

    def last(self, buffer: Lived, layer: int) -> bool:
        return False


class Edges(LayerOrder):
    """Each step begins when those that it reads have ended. ``before[a, b]``: step a ends before b begins.

    A layer on the CPU waits for all before it, and all behind it for that.
    """

    def __init__(self, graph: ir.Graph, steps: Sequence[ModelStep]) -> None:
        flow = step_flow(graph, steps)
        self.before: npt.NDArray[np.bool_] = np.zeros((len(steps), len(steps)), np.bool_)
        for i, step in enumerate(steps):
            if step.on_host:
                self.before[:i, i] = True
            for maker in flow.predecessors(i):
                self.before[:, i] |= self.before[:, maker]
                self.before[maker, i] = True
            hosts = [j for j in range(i) if steps[j].on_host]
            if hosts:
                self.before[: hosts[-1] + 1, i] = True

    def apart(self, a: Lived, b: Lived) -> bool:
        return self._all_before(a.users, b.users) or self._all_before(b.users, a.users)

    def together(self, buffers: Sequence[Lived]) -> npt.NDArray[np.bool_]:
        uses = np.zeros((len(buffers), len(self.before)), np.float32)
        for number, one in enumerate(buffers):
            uses[number, sorted(one.users)] = 1
        late = (
            uses @ (~self.before).astype(np.float32) @ uses.T > 0
        )  # some user of one does not end before one of other
        return late & late.T

    def alive(self, buffer: Lived, layer: int) -> bool:
        return not (self._all_before(buffer.users, {layer}) or self._all_before({layer}, buffer.users))

    def first(self, buffer: Lived, layer: int) -> bool:
        return layer in buffer.users and self._all_before({layer}, buffer.users - {layer})

    def last(self, buffer: Lived, layer: int) -> bool:
        return layer in buffer.users and self._all_before(buffer.users - {layer}, {layer})

    def _all_before(self, earlier: Set[int], later: Set[int]) -> bool:
        return bool(self.before[np.ix_(sorted(earlier), sorted(later))].all())
