"""Defines what is changed in a graph before its layers are ordered."""

from dataclasses import dataclass
from typing import ClassVar

from compiler.order.dimensions import Dimension


@dataclass(frozen=True)
class ImageCut:
    """Turns a run of ``operators``, by their names, into several in ``pieces`` along height or width of the result of
    the last. Nothing else reads what the others make."""

    kind: ClassVar[str] = "cut"
    operators: frozenset[str]
    dimension: Dimension
    pieces: int


@dataclass(frozen=True)
class HeadGroups:
    """Turns the chain of operators that ends in the product ``operator`` into one for each group of heads. ``groups``:
    the first head of each, and their number."""

    kind: ClassVar[str] = "heads"
    operator: str
    groups: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class InputLoad:
    """Brings ``input`` of the model to LV2 once, before the first layer that reads it."""

    kind: ClassVar[str] = "load"
    input: str


Rewrite = ImageCut | HeadGroups | InputLoad
