"""Names the parts of the machine that are synthesised and placed alone: each is small, and holds one of its worst
paths."""

from collections.abc import Callable, Mapping

from amaranth.lib import wiring

from hw.contract.isa import Unit
from hw.contract.params import SocParams
from hw.control.executor import Executor
from hw.control.semaphores import SemaphoreFile
from hw.dma.units import Ld1Unit
from hw.mac.unit import MacUnit
from hw.vec.lane import Lane
from hw.vec.requantise import Requantise

#: What makes each block for a machine, by its name.
BLOCKS: Mapping[str, Callable[[SocParams], wiring.Component]] = {
    "requantiser": lambda params: Requantise(),
    "lane": lambda params: Lane(),
    "semaphores": lambda params: SemaphoreFile(params, len(Unit)),
    "dma": Ld1Unit,
    "mac": MacUnit,
    "executor": Executor,
}
