"""A layer of the model with its object and its weights: what the linker puts together."""

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.backend.layers.layer import Layer
from compiler.backend.objects.layer_object import BodyObject
from compiler.plan.tiles import AnyTiles


@dataclass(frozen=True)
class JobCode:
    """A job of layer number ``layer``: its body, what its weight window holds, and the weights that it streams."""

    layer: int
    body: BodyObject
    window_data: bytes
    stream_data: bytes


@dataclass(frozen=True)
class LayerCode:
    """Holds the jobs of one layer, in order; ``summary``: a few words on its tiles; ``tiles``: those of each member."""

    number: int
    layer: Layer
    summary: str
    jobs: tuple[JobCode, ...]
    tiles: tuple[AnyTiles, ...] = ()

    @property
    def cycles(self) -> int:
        """Return the estimated cycles of all jobs, one after the other."""
        return sum(job.body.cycles for job in self.jobs)

    @property
    def busiest(self) -> int:
        """Return the estimated cycles of the engine with the most to compute."""
        return _most([(job.body.engine, job.body.cycles) for job in self.jobs])

    @property
    def streaming(self) -> int:
        """Return the estimated cycles in which bodies load from DRAM or store there, of the engine with the most."""
        return _most([(job.body.engine, job.body.streaming) for job in self.jobs])


def _most(cycles: Sequence[tuple[int, int]]) -> int:
    sums: dict[int, int] = {}
    for engine, count in cycles:
        sums[engine] = sums.get(engine, 0) + count
    return max(sums.values(), default=0)
