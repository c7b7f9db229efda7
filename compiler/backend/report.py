"""What the compiler reports about a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler import ir
from compiler.backend.layers.layer import ConvLayer
from compiler.backend.layers.region import members_of
from compiler.backend.memory.tensor_placement import TensorPlacement
from compiler.backend.objects.layer_code import LayerCode
from compiler.order.report import OrderReport
from compiler.plan.plan import Plan
from hw.contract.isa import Segment
from hw.image import ImageMeta


@dataclass(frozen=True)
class LayerReport:
    """How one layer was compiled. ``memories``: where its inputs and its output lie; ``tile``: shape of its tiles."""

    name: str
    kind: str
    jobs: int
    tile: str
    memories: str
    macs: int
    instructions: int
    weight_bytes: int
    estimated_cycles: int


@dataclass(frozen=True)
class CompileReport:
    """Says how a model was compiled, and the bytes of DRAM and of LV2 that it takes. ``orders``: what the order search
    did, for each run of layers between operators on the CPU; ``plan``: all that was decided."""

    model: str
    layers: list[LayerReport]
    dram_bytes: int
    lv2_bytes: int
    plan: Plan
    orders: tuple[OrderReport, ...] = ()

    @property
    def jobs(self) -> int:
        """Return how many jobs one inference has."""
        return sum(layer.jobs for layer in self.layers)

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of one inference."""
        return sum(layer.macs for layer in self.layers)

    @property
    def estimated_cycles(self) -> int:
        """Return the estimated cycles of all bodies, one after the other."""
        return sum(layer.estimated_cycles for layer in self.layers)


def compile_report(
    graph: ir.Graph, codes: Iterable[LayerCode], placement: TensorPlacement, meta: ImageMeta,
    orders: Sequence[OrderReport], plan: Plan,
) -> CompileReport:  # fmt: skip
    """Return the report of a compilation that made an image with ``meta``."""
    layers = [_layer(graph, one, placement) for one in codes]
    return CompileReport(
        graph.name, layers, sum(meta.segment_sizes[: Segment.LV2]), meta.lv2_bytes, plan, tuple(orders)
    )


def _layer(graph: ir.Graph, code: LayerCode, placement: TensorPlacement) -> LayerReport:
    layer = code.layer
    names = [name for name in (*layer.inputs, layer.output) if name in graph.tensors]
    places = ["LV2" if code.jobs and placement.view(name).on_chip else "DRAM" for name in names]
    return LayerReport(
        layer.name,
        layer.kind,
        len(code.jobs),
        code.summary,
        ", ".join(places[:-1]) + " -> " + places[-1] if places else "",
        layer.macs(graph),
        sum(job.body.tasks for job in code.jobs),
        sum(int(member.weights.size) for member in members_of(layer) if isinstance(member, ConvLayer)),
        code.busiest,
    )
