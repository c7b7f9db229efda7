"""The verifiers between the passes name what is wrong."""

from dataclasses import replace

import pytest

from compiler.emission.kernels.registry import KernelContext
from compiler.emission.objects.step_object import step_jobs
from compiler.emission.program.address import Anchor, Symbol
from compiler.emission.program.semaphores import Sem
from compiler.emission.program.task import Task
from compiler.emission.program.verify import verify_jobs
from compiler.ir import CompileError
from compiler.plan.layers.lower import lower
from compiler.plan.layers.step import ModelStep
from compiler.plan.layers.verify import verify_layers
from compiler.plan.memory.place import place
from compiler.plan.memory.verify import verify_placement, verify_staged
from compiler.plan.options import Options
from hw.contract.isa import Op
from hw.contract.params import preset
from tests.support.graphs import residual_block

TINY = preset("tiny")


def _compiled():
    graph = residual_block(0).graph
    layers = lower(graph, TINY)
    return graph, layers, *place(graph, [ModelStep.alone(layer) for layer in layers], TINY, Options())


def test_layers_out_of_order_are_found():
    graph, layers, _, _ = _compiled()
    verify_layers(graph, layers)
    with pytest.raises(CompileError, match="is read before anything computes it"):
        verify_layers(graph, layers[::-1])
    with pytest.raises(CompileError, match="nothing computes tensor"):
        verify_layers(graph, layers[:-1])
    with pytest.raises(CompileError, match="is computed twice"):
        verify_layers(graph, [*layers, layers[-1]])


def test_buffers_that_overlap_are_found():
    _, layers, budget, placement = _compiled()
    steps = [ModelStep.alone(layer) for layer in layers]
    verify_placement("model", placement, budget, steps, TINY)
    same = next(iter(b.offset for b in placement.by_tensor.values() if b.segment == 6))
    moved = {id(b): replace(b, offset=same) if b.segment == 6 else b for b in placement.by_tensor.values()}
    broken = replace(placement, by_tensor={name: moved[id(b)] for name, b in placement.by_tensor.items()})
    with pytest.raises(CompileError, match=r"model: internal error: .* share bytes while both live"):
        verify_placement("model", broken, budget, steps, TINY)
    low = {name: replace(b, offset=budget.staging_base) for name, b in placement.by_tensor.items()}
    with pytest.raises(CompileError, match=r"share bytes|lies in the staging areas"):
        verify_placement("model", replace(placement, by_tensor=low), budget, steps, TINY)


def test_a_tensor_where_instructions_pass_something_is_found():
    """Whatever the steps were expected to pass: those of jobs that are there count."""
    _, layers, budget, placement = _compiled()
    verify_staged("model", placement, budget, range(len(layers)))
    low = {name: replace(b, offset=budget.staging_base) for name, b in placement.by_tensor.items()}
    moved = replace(placement, by_tensor=low)
    verify_staged("model", moved, budget, [])
    used = next(iter({number for b in low.values() if b.segment == 6 and b.size for number in b.users}))
    with pytest.raises(CompileError, match=r"model: internal error: .* lies in the staging areas"):
        verify_staged("model", moved, budget, [used])


def test_jobs_with_stray_addresses_or_semaphores_are_found():
    _, layers, budget, placement = _compiled()
    jobs, _ = step_jobs(ModelStep.alone(layers[0]), KernelContext(TINY, 0, placement, budget))
    ((job, order),) = jobs[:1]
    verify_jobs("layer", [(job, order)])
    with pytest.raises(CompileError, match="ahead of its signal"):
        verify_jobs("layer", [(job, replace(order, tasks=order.tasks[::-1]))])
    stray = Task(Op.LD1, {"src": Symbol(Anchor.WINDOW, len(job.window_data))}, signals={Sem.OWN_READY})
    broken = replace(job, tasks=[*job.tasks, stray])
    with pytest.raises(CompileError, match="is outside of the job's weights"):
        verify_jobs("layer", [(broken, replace(order, tasks=[*order.tasks, stray]))])
