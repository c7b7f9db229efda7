"""Steps of a model: a layer alone, or a region of several whose instructions run side by side."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler import ir
from compiler.plan.layers.layer import HostLayer, Layer
from compiler.plan.layers.region_share import Share
from compiler.plan.plan import JobPlan, Place
from compiler.plan.tiles import AnyTiles
from hw.image import ParameterInfo


@dataclass(frozen=True, eq=False)
class ModelStep:
    """``members``, in an order in which they could run one after the other, read the tensors ``inputs``. A step stands
    in the layer table as one layer: it has one job or more on each engine, and is paused and measured as one.

    ``places``: by member of a region how all engines share it, or the one that computes it while others compute other
    members; empty for a layer alone. ``tiles`` of each member and ``jobs`` are what is decided already, None what is
    free.
    """

    members: tuple[Layer, ...]
    inputs: Sequence[str]
    places: tuple[Place, ...] = ()
    tiles: tuple[AnyTiles | None, ...] | None = None
    jobs: tuple[JobPlan, ...] | None = None

    @classmethod
    def alone(cls, layer: Layer) -> "ModelStep":
        """Return the step of one layer."""
        return cls((layer,), layer.inputs)

    @classmethod
    def region(cls, graph: ir.Graph, members: Sequence[Layer], places: Sequence[Place] = ()) -> "ModelStep":
        """Return the region of ``members``, which all engines share as they like unless ``places`` says otherwise."""
        roots = graph.roots()
        made = {roots[name] for member in members for name in member.outputs}
        read = dict.fromkeys(name for member in members for name in member.inputs if roots[name] not in made)
        return cls(tuple(members), list(read), tuple(places) or (Share.ANY,) * len(members))

    @property
    def name(self) -> str:
        """Return the names of its members."""
        return " + ".join(member.name for member in self.members)

    @property
    def kind(self) -> str:
        """Return the kinds of its members, each once."""
        return "+".join(dict.fromkeys(member.kind for member in self.members))

    @property
    def output(self) -> str:
        """Return what its last member writes."""
        return self.members[-1].output

    @property
    def on_host(self) -> bool:
        """Return whether it runs on the CPU."""
        return isinstance(self.members[0], HostLayer)

    @property
    def free(self) -> bool:
        """Return whether nothing is decided about its tiles and jobs."""
        return self.jobs is None and not any(self.tiles or ())


def parameters_of(members: Iterable[Layer]) -> list[ParameterInfo]:
    """Return the parameters that jobs of all ``members`` need, each once."""
    return list(dict.fromkeys(one for member in members for one in member.numbers))


def flattened(steps: Iterable[ModelStep]) -> list[Layer]:
    """Return all members of ``steps``, one by one."""
    return [member for step in steps for member in step.members]
