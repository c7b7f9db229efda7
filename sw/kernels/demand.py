"""Describes what operations ask for: demands, and how they follow from the description of a model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hw.image import AttributeProblem, Class1Value, check_class_2, class_1_key


class KernelDemand:
    """Is what an operation asks for, all but its current class-2 value: made once, used for every inference.

    ``key``: of its class-1 values; a string carries its hash, so nothing is computed again when it is looked up.
    ``parameter``: the attribute that is its class-2 parameter. ``source``: what a model calls the current value of it.
    Raises ``AttributeProblem`` for values that no kernel can have.
    """

    __slots__ = ("class_1", "key", "operation", "parameter", "source")

    def __init__(
        self, operation: str, class_1: Mapping[str, Class1Value], parameter: str, source: str | None = None
    ) -> None:
        self.operation = operation
        self.class_1 = dict(class_1)
        self.parameter = parameter
        self.source = source or parameter
        self.key = class_1_key(class_1, parameter)

    def value_in(self, current: Mapping[str, int]) -> int:
        """Return the class-2 value of the operation among a model's current ones, by name. Raises
        ``AttributeProblem``."""
        if self.source not in current:
            raise AttributeProblem(
                f"operation {self.operation!r} needs the current value of {self.source!r}; given are "
                f"{', '.join(map(repr, current)) or 'none'}"
            )
        return check_class_2(current[self.source], self.source)

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self.class_1.items())
        return f"operation {self.operation!r} ({values})" if values else f"operation {self.operation!r}"


@dataclass(frozen=True)
class Parameter:
    """Names a parameter of the model."""

    name: str

    def read(self, model: Mapping[str, Class1Value]) -> Class1Value:
        """Return the value of the parameter. Raises ``AttributeProblem`` if the model has none."""
        if self.name not in model:
            raise AttributeProblem(
                f"the model's description has no {self.name!r}; it has {', '.join(model) or 'nothing'}"
            )
        return model[self.name]


@dataclass(frozen=True)
class Quotient:
    """Is a parameter of the model that operations have a part of: 160 in all, over 2 heads, is 80."""

    whole: str
    parts: str

    def read(self, model: Mapping[str, Class1Value]) -> int:
        """Return the part that an operation has. Raises ``AttributeProblem`` unless it is a whole number."""
        whole, parts = (Parameter(name).read(model) for name in (self.whole, self.parts))
        for name, value in ((self.whole, whole), (self.parts, parts)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise AttributeProblem(f"{name!r} must be a whole number of at least 1, not {value!r}")
        assert isinstance(whole, int) and isinstance(parts, int)
        if whole % parts:
            raise AttributeProblem(f"{self.whole!r} ({whole}) is no multiple of {self.parts!r} ({parts})")
        return whole // parts


@dataclass(frozen=True)
class KernelOperation:
    """Is an operation of a model: where its class-1 values and its class-2 value come from. One that is not marked as
    ``accelerated`` is left alone. ``class_2``: its attribute, and the model's name for the current value."""

    name: str
    class_1: Mapping[str, Class1Value | Parameter | Quotient]
    class_2: tuple[str, str]
    accelerated: bool = True

    def demand(self, model: Mapping[str, Class1Value]) -> KernelDemand:
        """Return what the operation asks for in a model with this description."""
        values = {
            name: value.read(model) if isinstance(value, Parameter | Quotient) else value
            for name, value in self.class_1.items()
        }
        return KernelDemand(self.name, values, *self.class_2)


def demands_of(operations: Iterable[KernelOperation], model: Mapping[str, Class1Value]) -> list[KernelDemand]:
    """Return the demands of the operations that are marked for acceleration, in their order, in a model with this
    description. Raises ``AttributeProblem``, naming the operation."""
    demands = []
    for operation in operations:
        if operation.accelerated:
            try:
                demands.append(operation.demand(model))
            except AttributeProblem as problem:
                raise AttributeProblem(f"operation {operation.name!r}: {problem}") from None
    return demands
