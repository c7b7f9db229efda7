"""Tells what each operation of a model with a dynamic dimension asks for (**Run-time kernel matching**)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from caesura.lengths.kernel_source import KernelSource
from compiler import ModelOperation, operations_of
from sw.kernels import KernelDemand, KernelOperation, Parameter, Quotient, demands_of

OPERATORS = ("attention", "layers")  #: of operations that may be accelerated


@dataclass(frozen=True)
class OperationStep:
    """Is an operation with what makes kernels for it, and what it asks for; None: it is left alone."""

    operation: ModelOperation
    source: KernelSource
    demand: KernelDemand | None


class OperationDemands:
    """Is a model as operations. ``demands``: what those ask for that are marked for acceleration, in order: those of
    ``operators``. ``description``: of the model, where demands come from."""

    def __init__(self, source: KernelSource, operators: Sequence[str] = OPERATORS) -> None:
        self.dimension = source.dimension
        found = operations_of(source.dimension)
        sources = [replace(source, dimension=each.dimension) for each in found]
        self.description = {f"{each.name}.{size}": value for each in found for size, value in each.sizes.items()}
        asked = [_asking(each, made, operators) for each, made in zip(found, sources, strict=True)]
        demands = {demand.operation: demand for demand in demands_of(asked, self.description)}
        self.steps = [
            OperationStep(each, made, demands.get(each.name)) for each, made in zip(found, sources, strict=True)
        ]
        self.demands = list(demands.values())

    def different(self) -> list[tuple[KernelDemand, KernelSource, ModelOperation]]:
        """Return each demand once, with what makes kernels for it, and an operation that asks: equal ones share
        theirs."""
        found = {
            step.demand.key: (step.demand, step.source, step.operation)
            for step in self.steps
            if step.demand is not None
        }
        return list(found.values())


def _asking(operation: ModelOperation, source: KernelSource, operators: Sequence[str]) -> KernelOperation:
    name, class_1 = operation.name, dict[str, Any](operator=operation.operator)
    if operation.sizes:
        heads, width = f"{name}.heads", f"{name}.width"
        class_1 |= {"heads": Parameter(heads), "head_size": Quotient(width, heads)}
    class_1 |= source.demand().class_1
    return KernelOperation(name, class_1, ("length", source.dimension.label), operation.operator in operators)
