"""Loads that prologues do come right before what reads them: earlier they would keep places in LV2 and save nothing."""

from collections.abc import Sequence

from compiler import ir
from compiler.plan.layers.layer import LoadLayer
from compiler.plan.layers.step import ModelStep


def late_loads(graph: ir.Graph, steps: Sequence[ModelStep]) -> list[ModelStep]:
    """Return ``steps`` with each load ahead of time right before the first that reads its result."""
    loads = {step.output: step for step in steps if _is_load(step)}
    if not loads:
        return list(steps)
    roots, found, left = graph.roots(), list[ModelStep](), dict(loads)
    for step in steps:
        if _is_load(step):
            continue
        read = {roots[name] for name in step.inputs}
        found += [left.pop(name) for name in list(left) if roots[name] in read]
        found.append(step)
    return [*left.values(), *found]


def _is_load(step: ModelStep) -> bool:
    first = step.members[0]
    return isinstance(first, LoadLayer) and first.ahead
