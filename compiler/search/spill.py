"""What of a model does not fit into LV2, and how much of it would do: told where a model is compiled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler import ir
from compiler.pipeline import given_steps, lowered
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.place import place
from compiler.plan.options import Options
from compiler.plan.plan import Plan
from hw.contract.isa import Segment
from hw.contract.params import MIB, SocParams

_LARGEST = 16 * MIB  #: of LV2 in any machine
_STEP = 4 * 1024  #: bytes to which the least LV2 is found


@dataclass(frozen=True)
class SpilledTensors:
    """``tensors`` of ``bytes`` together lie in DRAM since LV2 is too small. With ``enough`` bytes of LV2 none would, in
    this order of layers; None: with none that a machine can have."""

    tensors: tuple[str, ...]
    bytes: int
    enough: int | None

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.tensors[:3])) + (", ..." if len(self.tensors) > 3 else "")
        mended = f"none would with {self.enough:,} bytes of it" if self.enough else "nor would they with any LV2"
        return f"{self.bytes:,} bytes of tensors do not fit into LV2 and pass through DRAM ({shown}): {mended}"


def spill_of(graph: ir.Graph, plan: Plan) -> SpilledTensors | None:
    """Return what ``plan``, which is complete, spills; None if nothing."""
    assert plan.memory is not None
    states = {name for op in graph.ops for name in (*op.places, *op.places.values())}
    inputs = {port.tensor for port in graph.inputs}
    spilled = [
        one for one in plan.memory.buffers
        if one.segment == Segment.SCRATCH and one.size and not (states | inputs).intersection(one.tensors)
    ]  # fmt: skip
    if not spilled:
        return None
    names = tuple(one.tensors[0] for one in sorted(spilled, key=lambda one: -one.size))
    model = lowered(graph, plan)
    steps = given_steps(model, plan)
    return SpilledTensors(
        names, sum(one.size for one in spilled), _enough(model.graph, steps, plan.params, plan.options)
    )


def _enough(graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options) -> int | None:
    """Return the least LV2 in which ``steps`` spill nothing, to within a step."""
    low, high = options.lv2_bytes(params) // _STEP, _LARGEST // _STEP
    if not _fits(high, graph, steps, params, options):
        return None
    while high - low > 1:
        at = (low + high) // 2
        low, high = (low, at) if _fits(at, graph, steps, params, options) else (at, high)
    return high * _STEP


def _fits(count: int, graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options) -> bool:
    machine, part = replace(params, lv2_bytes=_LARGEST), replace(options, lv2_limit=count * _STEP)
    try:
        return not place(graph, steps, machine, part)[1].moved
    except ir.CompileError:
        return False
