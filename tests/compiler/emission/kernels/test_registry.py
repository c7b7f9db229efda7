"""Every layer finds its kernel; what none computes is named."""

import pytest

from compiler import ir
from compiler.emission.kernels.conv import ConvKernel
from compiler.emission.kernels.eltwise import EltwiseKernel
from compiler.emission.kernels.move import MoveKernel, PadKernel
from compiler.emission.kernels.registry import KERNELS, HostKernel, KernelContext, kernel_for
from compiler.emission.kernels.windows import WindowKernel
from compiler.plan.layers.layer import Layer
from compiler.plan.layers.lower import lower
from compiler.plan.layers.step import ModelStep
from compiler.plan.memory.place import place
from compiler.plan.options import Options
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder

TINY = preset("tiny")


def _context(builder: GraphBuilder, layers: list[Layer]) -> KernelContext:
    budget, placement = place(builder.graph, [ModelStep.alone(layer) for layer in layers], TINY, Options())
    return KernelContext(TINY, 0, placement, budget)


def test_kernels_match_their_layers():
    builder = GraphBuilder(0)
    x = builder.conv(builder.input((1, 8, 8, 4)), 4)
    y = builder.pad(builder.pool("max", builder.table(x), (2, 2), (1, 1)), (1, 1, 1, 1))
    builder.output(builder.permute(y, (0, 2, 1, 3)))
    layers = lower(builder.graph, TINY)
    context = _context(builder, layers)
    found = [type(kernel_for(layer, context)) for layer in layers]
    assert found == [ConvKernel, EltwiseKernel, WindowKernel, PadKernel, MoveKernel]
    assert {*found, HostKernel} <= {type(kernel) for kernel in KERNELS}


def test_a_layer_without_a_kernel_is_named():
    builder = GraphBuilder(0)
    x = builder.input((1, 2, 2, 2))
    op = ir.Reshape("odd one", [x], x)
    context = _context(builder, [])
    with pytest.raises(ir.CompileError, match="operator 'odd one': no kernel computes a strange"):
        kernel_for(Layer(op, [x], x, "strange"), context)
