"""Regions: several layers that become one step of the model, with instructions that run side by side."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from compiler import ir
from compiler.backend.layers.layer import Layer
from compiler.backend.layers.region_share import Share

Place = Share | int  #: how all engines share a member, or the engine that computes all of it


@dataclass(eq=False)
class Region(Layer):
    """``members``, in an order in which they could run one after the other. It stands in the layer table as one layer:
    it has one job on each engine, and is scheduled, paused and measured as one.

    ``places``: by member how all engines share it, or the one that computes it while others compute other members.
    """

    members: tuple[Layer, ...]
    places: tuple[Place, ...]
    strided: ClassVar[bool] = True

    @classmethod
    def of(cls, graph: ir.Graph, members: Sequence[Layer], places: Sequence[Place] = ()) -> "Region":
        """Return the region of ``members``, which all engines share as they like unless ``places`` says otherwise."""
        roots = graph.roots()
        made = {roots[name] for member in members for name in member.outputs}
        read = [name for member in members for name in member.inputs if roots[name] not in made]
        last = members[-1]
        kind = "+".join(dict.fromkeys(member.kind for member in members))
        where = tuple(places) or (Share.ANY,) * len(members)
        return cls(last.op, list(dict.fromkeys(read)), last.output, kind, tuple(members), where)

    @property
    def name(self) -> str:
        """Return the names of its members."""
        return " + ".join(member.name for member in self.members)

    @property
    def nodes(self) -> list[str]:
        """Return the ONNX nodes of its members."""
        return [node for member in self.members for node in member.nodes]

    @property
    def outputs(self) -> list[str]:
        """Return what its members write, also for each other."""
        return [name for member in self.members for name in member.outputs]

    def macs(self, graph: ir.Graph) -> int:
        """Of its members."""
        return sum(member.macs(graph) for member in self.members)


def members_of(layer: Layer) -> tuple[Layer, ...]:
    """Return the members of a region; a plain layer is its own."""
    return layer.members if isinstance(layer, Region) else (layer,)


def flattened(layers: Iterable[Layer]) -> list[Layer]:
    """Return all layers, members of regions one by one."""
    return [member for layer in layers for member in members_of(layer)]
