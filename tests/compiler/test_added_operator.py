"""A new operator needs its definition, and a layer with its lowering and kernel: nothing else knows it by name."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from compiler import ir
from compiler.emission.kernels.registry import KERNELS, Kernel, KernelContext, kernel
from compiler.emission.kernels.vector_job import VectorJob
from compiler.emission.program import JobProgram, Sem
from compiler.plan.layers.layer import Layer
from compiler.plan.layers.lower import LOWERINGS, lowers
from compiler.plan.memory.tensor_view import boxes
from compiler.plan.tiles import Uncut
from compiler.verify import verify
from hw.contract.isa import VecOp
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check


@dataclass
class Negation(ir.Operation):
    """``s = a_zp - A``."""

    requantise: ir.Requantisation

    def _problems(self, inputs, output) -> Iterator[str]:
        yield from self.requantise.problems(output, 1)

    def _compute(self, inputs, output):
        return self.requantise.of(-inputs[0].centred, output.dtype)


@dataclass(eq=False)
class NegationLayer(Layer):
    """A negation."""

    requantise: ir.Requantisation


class NegationKernel(Kernel[Uncut]):
    """An image at a time, on the first engine."""

    layers = NegationLayer

    def choose(self, layer: NegationLayer, context: KernelContext) -> Uncut:
        """Nothing to choose."""
        return Uncut()

    def job(self, layer: NegationLayer, tiles: Uncut, context: KernelContext, engine: int) -> JobProgram | None:
        """All of it."""
        x, y, lanes = context.operand(layer.inputs[0]), context.operand(layer.output), context.params.vec_lanes
        build = VectorJob(context, engine, layer.requantise, {"ma": -1, "zp_a": x.zero_point})
        _, height, width, channels = y.view.shape
        line = -(-channels // lanes) * lanes
        row = width * line
        ring, out = (
            build.ring(full, free, height * row)
            for full, free in ((Sem.A_FULL, Sem.A_FREE), (Sem.OUT_FULL, Sem.OUT_FREE))
        )
        stage = build.stage(x, height * row, Sem.STAGE_FULL, Sem.STAGE_FREE)
        spill = build.spill(y, height * row)
        for box in boxes(y.view.shape, height, width, channels) if engine == 0 else ():
            fill, made = ring.fill(box), out.fill(box)
            ring.filled_by(fill, build.job.load(x.view, box, fill.address, row, line, x.zero_byte, stage, box))
            fields = {
                "op": VecOp.LIN, "a_signed": int(x.signed), "n1": height * width, "n0": line // lanes,
                "a": fill.address, "a_s1": line, "a_s0": lanes, "d": made.address, "d_s1": line, "d_s0": lanes,
            }  # fmt: skip
            vec = build.vec("result", fields)
            ring.read_by(fill, vec)
            out.filled_by(made, [vec])
            out.read_by(made, build.job.store(y.view, box, made.address, row, line, spill, box))
        return build.finished()


@pytest.fixture
def negation():
    """Its lowering and its kernel, while the test runs."""
    lowers(Negation)(lambda graph, op, params: [NegationLayer(op, op.inputs, op.output, "negation", op.requantise)])
    kernel(NegationKernel)
    yield
    del LOWERINGS[Negation]
    KERNELS.pop()


@pytest.mark.usefixtures("negation")
@pytest.mark.parametrize("engines", [1, 2])
def test_an_operator_is_added_without_a_change_elsewhere(engines):
    build = GraphBuilder(7)
    x = build.table(build.input((2, 5, 6, 9)))
    y = build.tensor((2, 5, 6, 9))
    build.graph.ops.append(Negation(y, [x], y, build.requantise(y, 50)))
    build.output(build.table(y))
    check(build.graph, replace(preset("tiny"), engines=engines))


def test_what_it_says_of_itself_is_checked():
    build = GraphBuilder(7)
    x, y = build.input((1, 2, 2, 4)), build.tensor((1, 2, 2, 4))
    wrong = replace(build.requantise(y, 50), hi=300)
    build.graph.ops.append(Negation(y, [x], y, wrong))
    build.output(y)
    with pytest.raises(ir.CompileError, match=r"negation .*: clamp \[.*, 300\] is not within int8"):
        verify(build.graph)
