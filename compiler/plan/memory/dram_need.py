"""Whether a model has room in DRAM: exactly, once all sizes are known, and at least, before anything is decided."""

from collections.abc import Sequence

from compiler import ir
from compiler.ir import CompileError
from hw.contract.isa import Segment
from hw.contract.params import KIB, SocParams

_DRIVER_RESERVE = 64 * KIB  #: DRAM left for rings, completions and programs of the driver, per engine


def check_dram(model: str, sizes: Sequence[int], params: SocParams, *, least: bool = False) -> None:
    """Raise :class:`CompileError` if segments of so many bytes, by number, do not fit in DRAM. ``least``: the model may
    need more."""
    need = sum(sizes[: Segment.SHARED + 1]) + _DRIVER_RESERVE * params.engines
    if need > params.dram_bytes:
        raise CompileError(
            f"model {model!r} needs {'at least ' * least}{need} bytes of DRAM (code {sizes[0]}, weights {sizes[1]}, "
            f"tensors {sum(sizes[2:6])}), preset {params.name!r} has {params.dram_bytes}: choose a preset with a "
            "larger dram_bytes"
        )


def least_sizes(graph: ir.Graph) -> list[int]:
    """Return by segment the bytes that ``graph`` needs whatever is decided: those of inputs, outputs, and of the
    filters of its convolutions that differ."""
    sizes = [0] * len(Segment)
    filters = {(one.tobytes(), op.int4) for op in graph.ops if isinstance(op, ir.Conv) for one in op.weights}
    sizes[Segment.WEIGHTS] = sum(len(one) // 2 if int4 else len(one) for one, int4 in filters)
    for segment, ports in ((Segment.INPUTS, graph.inputs), (Segment.OUTPUTS, graph.outputs)):
        sizes[segment] = sum(graph.tensors[name].size for name in {port.tensor for port in ports})
    return sizes
