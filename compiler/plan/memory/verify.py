"""The verifiers of where tensors lie, run before any instruction is made."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, pairwise

from compiler import ir
from compiler.ir import CompileError
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.budget import Lv2Budget
from compiler.plan.memory.sharing import BufferSharing, SharedBuffer
from compiler.plan.memory.staging import StagedSteps
from compiler.plan.memory.tensor_placement import DRAM_ALIGN, TensorBuffer, TensorPlacement
from compiler.plan.options import Options
from compiler.plan.plan import BufferPlan, MemoryPlan
from compiler.plan.plan_error import PlanError
from hw.contract.isa import Segment
from hw.contract.params import SocParams

_SIZED = {int(one) for one in (Segment.INPUTS, Segment.OUTPUTS, Segment.SCRATCH, Segment.SHARED, Segment.LV2)}


def verify_placement(
    model: str, placement: TensorPlacement, budget: Lv2Budget, steps: Sequence[ModelStep], params: SocParams, *,
    planned: bool = False,
) -> None:  # fmt: skip
    """Check that buffers which live at the same time share no byte, and that none reaches into the staging areas while
    a step passes something there. Raises :class:`CompileError`, :class:`PlanError` if the placement was ``planned``,
    naming ``model``, a tensor of each, and offsets."""
    for problem in _overlaps(placement, budget, steps, params):
        if planned:
            raise PlanError(f"model {model!r}: memory of the plan: {problem}; leave memory out to have it decided")
        raise CompileError(f"{model}: internal error: {problem}")


def verify_staged(model: str, placement: TensorPlacement, budget: Lv2Budget, staged: Iterable[int]) -> None:
    """Check that no buffer lies in the staging areas while one of the steps ``staged``, whose instructions pass
    something there, runs. Raises :class:`CompileError` that names ``model`` and a tensor."""
    for problem in _in_staging(placement, budget, staged):
        raise CompileError(f"{model}: internal error: {problem}")


def _overlaps(
    placement: TensorPlacement, budget: Lv2Budget, steps: Sequence[ModelStep], params: SocParams
) -> Iterator[str]:
    passing = StagedSteps.of(steps, budget.windows, params)
    staged = passing.numbers(lambda name: placement.home(name).segment in (Segment.LV2, None))
    staged = staged if not budget.placed else frozenset(range(len(steps)))
    names = {id(buffer): name for name, buffer in reversed([*placement.by_tensor.items()])}
    buffers = {id(buffer): buffer for buffer in placement.by_tensor.values() if buffer.size}
    for segment in sorted({one.segment for one in buffers.values() if one.segment is not None}):
        held = sorted((b for b in buffers.values() if b.segment == segment), key=lambda b: b.offset)
        shared = segment in (Segment.LV2, Segment.SCRATCH)
        held = [one for one in held if one.users or not (shared or segment == Segment.WEIGHTS)]
        for a, b in combinations(held, 2):
            if b.offset < a.offset + a.size and not (shared and placement.order.apart(a, b)):
                yield (
                    f"buffers at {a.offset} ({names[id(a)]!r}) and {b.offset} ({names[id(b)]!r}) of segment "
                    f"{int(segment)} share bytes while both live"
                )
    yield from _in_staging(placement, budget, staged)


def _in_staging(placement: TensorPlacement, budget: Lv2Budget, staged: Iterable[int]) -> Iterator[str]:
    """Yield the buffers that lie in the staging areas while one of the steps ``staged`` runs."""
    names = {id(buffer): name for name, buffer in reversed([*placement.by_tensor.items()])}
    held = {id(buffer): buffer for buffer in placement.by_tensor.values() if buffer.size and buffer.users}
    passing = frozenset(staged)
    for buffer in held.values():
        meets = buffer.segment == Segment.LV2 and _meets_staging(buffer, budget)
        if meets and any(placement.order.alive(buffer, number) for number in passing):
            yield f"the buffer at {buffer.offset} of LV2 ({names[id(buffer)]!r}) lies in the staging areas"


def _meets_staging(buffer: TensorBuffer, budget: Lv2Budget) -> bool:
    return buffer.offset < budget.staging_end and budget.staging_base < buffer.offset + buffer.size


def verify_memory(
    graph: ir.Graph, sharing: BufferSharing, memory: MemoryPlan, params: SocParams, options: Options
) -> None:  # fmt: skip
    """Check that ``memory``, which a plan gives, has a home of the right size, alignment and segment for every tensor,
    shares buffers as ``sharing`` allows, and fits. Raises :class:`PlanError` naming tensor or field, value and
    limit: the first problem, as those behind it may follow from it."""
    problems = chain(
        _division(memory, params, options), _homes(sharing, memory), _buffers(sharing, memory, params, options),
        _exports(graph, sharing, memory, options),
    )  # fmt: skip
    for problem in problems:
        raise PlanError(f"model {graph.name!r}: memory of the plan: {problem}; leave memory out to have it decided")


def _division(memory: MemoryPlan, params: SocParams, options: Options) -> Iterator[str]:
    area, sizes, word, lv2 = memory.staging, dict(memory.sizes), params.lv1_word, options.lv2_bytes(params)
    fields = {"staging.base": area.base, "staging.size": area.size, "windows": memory.windows}
    for name, value in fields.items():
        if not 0 <= value <= lv2 or value % word:
            yield f"{name} is {value}, and must be 0 to {lv2} in whole words of {word} bytes"
    if not 0 <= memory.job_weights <= memory.windows:
        yield f"job_weights is {memory.job_weights}, and must be 0 to windows, {memory.windows}"
    if sizes.keys() != _SIZED or len(memory.sizes) != len(sizes):
        yield f"sizes are of segments {sorted(number for number, _ in memory.sizes)}, and must be of {sorted(_SIZED)}"
    for number, size in sizes.items():
        if not 0 <= size <= params.dram_bytes:
            yield f"sizes[{number}] is {size}, and must be 0 to {params.dram_bytes}"
    used = max(sizes[Segment.LV2], area.base + options.engines * area.size) + options.engines * memory.windows
    if used > lv2:
        yield f"tensors, staging and windows take {used} bytes of LV2, {lv2} are allowed"


def _homes(sharing: BufferSharing, memory: MemoryPlan) -> Iterator[str]:
    given = [name for buffer in memory.buffers for name in buffer.tensors]
    for name in (*given, *sharing.buffers):
        if given.count(name) != 1 or name not in sharing.buffers:
            known = f"has {given.count(name)} buffers" if name in sharing.buffers else "is not in the model"
            yield f"tensor {name!r} {known}; each has one"
    homes = {name: buffer for buffer in memory.buffers for name in buffer.tensors}
    theirs: dict[int, BufferPlan] = {}
    for name, buffer in sharing.buffers.items():
        if theirs.setdefault(id(buffer), homes[name]) is not homes[name]:
            yield f"tensor {name!r} must share its buffer with those of {theirs[id(buffer)].tensors}"
    if len(theirs) != len({id(one) for one in theirs.values()}) or len(theirs) != len(memory.buffers):
        yield "tensors share a buffer that may not"
    inside = {name: (outer, first) for name, outer, first in memory.inside}
    if odd := [name for name in inside | sharing.inside if inside.get(name) != sharing.inside.get(name)]:
        yield f"inside: tensor {odd[0]!r} lies in {inside.get(odd[0])}, and must in {sharing.inside.get(odd[0])}"


def _buffers(sharing: BufferSharing, memory: MemoryPlan, params: SocParams, options: Options) -> Iterator[str]:
    homes, sizes = {name: one for one in memory.buffers for name in one.tensors}, dict(memory.sizes)
    addressed = {id(one) for one in sharing.unique()}
    for name, buffer in sharing.buffers.items():
        home = homes[name]
        where, least = f"buffer of tensor {name!r}: ", buffer.size + (buffer.padding if home.pitch else 0)
        allowed = _segments(buffer, id(buffer) in addressed, options)
        if home.segment not in allowed:
            yield f"{where}segment is {home.segment}, and must be {' or '.join(map(str, allowed))}"
        if home.pitch not in (0, buffer.pitch) or (home.pitch and home.segment != Segment.LV2):
            yield f"{where}pitch is {home.pitch}, and must be 0" + f", or {buffer.pitch} in LV2" * bool(buffer.pitch)
        if home.size < least:
            yield f"{where}size is {home.size}, and must be {least} at least"
        align = params.lv1_word if home.segment == Segment.LV2 else DRAM_ALIGN
        most = sizes.get(home.segment, params.dram_bytes) if home.segment is not None else home.size
        if home.offset < 0 or home.offset % align or (buffer.users and home.offset + home.size > most):
            yield (
                f"{where}{home.size} bytes at offset {home.offset} must be aligned to {align} and end by {most}, the "
                f"size of segment {home.segment}"
            )


def _segments(buffer: SharedBuffer, addressed: bool, options: Options) -> list[int | None]:
    """Return the segments that a buffer may lie in."""
    if buffer.segment is not None or not addressed:
        return [None if buffer.segment is None else int(buffer.segment)]
    return [int(Segment.LV2), int(Segment.SHARED if options.observe else Segment.SCRATCH)]


def _exports(graph: ir.Graph, sharing: BufferSharing, memory: MemoryPlan, options: Options) -> Iterator[str]:
    segments = {name: one.segment for one in memory.buffers for name in one.tensors}
    wanted = {
        name for name, tensor in graph.tensors.items()
        if options.observe and segments.get(name) == Segment.LV2 and tensor.data is None
    }  # fmt: skip
    given = dict(memory.exports)
    if odd := sorted(wanted ^ given.keys()):
        told = "missing" if odd[0] in wanted else "no result in LV2 that is observed"
        yield f"exports: tensor {odd[0]!r} is {told}"
    held = {(one.offset, one.offset + one.size) for one in memory.buffers if one.segment == Segment.SHARED and one.size}
    places = {(sharing.roots[name], at, at + graph.tensors[name].size) for name, at in given.items()}
    spans = sorted([*held, *((low, high) for _, low, high in places)])
    most = dict(memory.sizes)[Segment.SHARED]
    for low, high in spans:
        if low < 0 or low % DRAM_ALIGN or high > most:
            yield f"exports: {high - low} bytes at {low} must be aligned to {DRAM_ALIGN} and end by {most}"
    for (_, high), (low, _) in pairwise(spans):
        if low < high:
            yield f"exports: copies at {low} share bytes with others"
