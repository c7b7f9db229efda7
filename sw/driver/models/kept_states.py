"""Gives memory to what a model keeps from one inference to the next, and takes it back."""

from hw.contract.bus import Bus
from hw.contract.isa import Segment
from sw.driver.memory.allocator import Allocator
from sw.driver.memory.placement import SEGMENT_ALIGN
from sw.driver.models.loaded_model import LoadedModel


def new_state(model: LoadedModel, dram: Allocator, bus: Bus) -> int:
    """Return the first byte of memory for a state of ``model``, which holds zeros."""
    size = model.segments[Segment.SCRATCH][1]
    base = dram.allocate(size, SEGMENT_ALIGN, f"a state of model {model.name!r}")
    bus.write_mem(base, bytes(size), charge=False)
    model.placement.dram_blocks.append(base)
    return base


def end_state(model: LoadedModel, base: int, dram: Allocator, bus: Bus) -> None:
    """Clear the state at ``base``, which no job uses, and give its memory back."""
    model.placement.dram_blocks.remove(base)
    bus.write_mem(base, bytes(model.segments[Segment.SCRATCH][1]), charge=False)
    dram.free(base)
