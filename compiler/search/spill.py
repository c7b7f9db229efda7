"""What of a model does not fit into LV2, and how much of it would do: told where a model is compiled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler import ir
from compiler.pipeline import given_steps, lowered
from compiler.plan.layers.step import ModelStep
from compiler.plan.lowered_model import LoweredModel
from compiler.plan.memory.place import place
from compiler.plan.options import Options
from compiler.plan.plan import Plan, Reload
from compiler.plan.structure import layer_names
from hw.contract.isa import Segment
from hw.contract.params import MIB, SocParams

_LARGEST = 16 * MIB  #: of LV2 in any machine
LEAST_STEP = 4 * 1024  #: bytes to which the least LV2 is found


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
    model, steps = _without_reloads(graph, plan)
    enough = least_without_spill(model.graph, steps, plan.params, plan.options, plan.options.lv2_bytes(plan.params))
    return SpilledTensors(names, sum(one.size for one in spilled), enough)


def _without_reloads(graph: ir.Graph, plan: Plan) -> tuple[LoweredModel, list[ModelStep]]:
    """Return the model and the steps of ``plan`` if all tensors stayed in LV2."""
    assert plan.rewrites is not None and plan.steps is not None
    rewrites = tuple(one for one in plan.rewrites if not isinstance(one, Reload))
    model = lowered(graph, replace(plan, rewrites=rewrites, layers=None, steps=None, memory=None))
    named = {*layer_names(model.layers)}
    steps = tuple(one for one in plan.steps if named.issuperset(one.layers))  # no stores and loads
    return model, given_steps(model, replace(plan, steps=steps))


def least_without_spill(
    graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options, above: int = 0
) -> int | None:  # fmt: skip
    """Return the least bytes of LV2, more than ``above``, in which ``steps`` spill nothing, to within a step; None if
    no machine has so much."""
    low, high = above // LEAST_STEP, _LARGEST // LEAST_STEP
    if not _fits(high, graph, steps, params, options):
        return None
    while high - low > 1:
        at = (low + high) // 2
        low, high = (low, at) if _fits(at, graph, steps, params, options) else (at, high)
    return high * LEAST_STEP


def _fits(count: int, graph: ir.Graph, steps: Sequence[ModelStep], params: SocParams, options: Options) -> bool:
    machine, part = replace(params, lv2_bytes=_LARGEST), replace(options, lv2_limit=count * LEAST_STEP)
    try:
        return not place(graph, steps, machine, part)[1].moved
    except ir.CompileError:
        return False
