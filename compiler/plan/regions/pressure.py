"""What regions pay for the bytes that live beside them: layers that run side by side hold what all of them make at
once, and what they leave no room for passes from and to DRAM."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from compiler.plan.order.alive_sets import AliveSets
from compiler.plan.order.graph import Order
from hw.contract.params import SocParams
from sim.cost import moved

#: Of a byte's time on DRAM, what it costs that a region has no room for it: nothing, as it takes, and with all that
#: follows from it.
WEIGHTS = (0.0, 1.0, 8.0)


@dataclass(frozen=True)
class Pressure:
    """Says that what is alive beyond ``room`` bytes, as ``sets`` tell, costs ``weight`` times its time on DRAM."""

    sets: AliveSets
    room: int
    weight: float
    params: SocParams

    def along(self, order: Order) -> Callable[[int, int], float]:
        """Return what a step of the positions from the first number to before the second costs."""
        begun, ended = [0] * (len(order) + 1), [0] * (len(order) + 1)
        for size, first, last in self.sets.lives(order):
            begun[first + 1] += size
            ended[last + 1] += size
        begun, ended = list(itertools.accumulate(begun)), list(itertools.accumulate(ended))
        cycles = self.weight * moved(1, self.params)

        def cost(begin: int, end: int) -> float:
            return cycles * max(0, begun[end] - ended[begin] - self.room)

        return cost


def free(begin: int, end: int) -> float:
    """Return what a step costs where nothing is counted."""
    return 0.0
