"""Pieces of concatenations that are read where they lie: every result is that of the reference, in any memory."""

import random
from dataclasses import replace

import numpy as np
import pytest

import caesura
from benchmarks.workloads import inputs, workload
from compiler import CompileError, Options, compile_with_report, ir, memory_study, reference
from compiler.emission.objects.desk import Desk
from compiler.frontend import import_model
from compiler.pipeline import blank, build, emit, fill, lowered
from compiler.plan.plan import PiecesRead, Plan
from hw.contract.isa import Segment
from hw.contract.params import KIB, preset
from hw.image.image import Image
from tests.support.check.races import RaceChecker
from tests.support.graphs import GraphBuilder, random_inputs
from tests.support.image_runner import run_image
from tests.support.joined_graphs import joined_graph
from tests.support.sampled import sampled

TINY, BASE = preset("tiny"), preset("base")


def in_pieces(graph, params, options=None):
    """The image and the plan of ``graph`` in which all pieces are read where they lie, whatever that costs."""
    free = blank(graph, params, options or Options())
    model = lowered(graph, free).in_pieces()
    assert model is not None
    with Desk(1) as desk:
        plan, _ = fill(replace(free, rewrites=model.rewrites), graph, desk)
        assert not {one.operator for one in plan.rewrites if isinstance(one, PiecesRead)} & set(plan.layers)
        return emit(plan, graph, desk), plan


def check(graph, image, params):
    """Outputs equal the reference, and nothing is read while it is written."""
    feed = random_inputs(graph, 7)
    found = run_image(Image.from_bytes(image.to_bytes()), feed, observer=RaceChecker(params))
    expected = reference.run_all(graph, feed)
    for port in graph.outputs:
        np.testing.assert_array_equal(found[port.tensor], expected[port.tensor], err_msg=graph.name)


@pytest.mark.parametrize("seed", sampled(range(8), 4))
def test_results_are_exact(seed):
    graph = joined_graph(seed)
    check(graph, in_pieces(graph, TINY)[0], TINY)


@pytest.mark.parametrize("seed", sampled([16, 17], 1))
@pytest.mark.parametrize("regions", [True, False])
def test_pieces_in_dram_are_exact_too(seed, regions):
    graph, spilled = joined_graph(seed, least=20, size=16), 0
    for part in (4, 8):
        try:
            image, plan = in_pieces(graph, TINY, Options(lv2_limit=TINY.lv2_bytes // part, regions=regions))
        except CompileError:  # tiles need more
            continue
        spilled += dict(plan.memory.sizes)[Segment.SCRATCH]
        check(graph, image, TINY)
    assert spilled


@pytest.mark.parametrize("seed", range(24, 27))
def test_engines_share_what_reads_pieces(seed):
    graph = joined_graph(seed, least=20, size=14)
    check(graph, in_pieces(graph, BASE, Options(engines=2))[0], BASE)


def test_a_random_graph():
    seed = random.SystemRandom().randrange(1 << 31)
    print("seed", seed)
    graph = joined_graph(seed)
    check(graph, in_pieces(graph, TINY)[0], TINY)


@pytest.mark.slow
def test_on_the_rtl():
    made = compile_with_report(
        workload("nasnet_small"), BASE, options=Options(objective="memory", engines=1), jobs=1
    )  # fmt: skip
    assert any(isinstance(one, PiecesRead) for one in made.plan.rewrites)
    feed = inputs("nasnet_small")
    with caesura.open(BASE, "native") as device:
        found, _ = device.load(made.image).run(feed)
    for name, value in reference.run(made.graph, feed).items():
        np.testing.assert_array_equal(found[name], value)


def test_what_fits_makes_its_concatenations():
    graph = joined_graph(2)
    plan = build(graph, BASE, Options(), jobs=1)[1]
    assert not any(isinstance(one, PiecesRead) for one in plan.rewrites)
    assert {op.name for op in graph.ops if isinstance(op, ir.Concat)} <= set(plan.layers)


@pytest.mark.slow
def test_where_tensors_do_not_fit_pieces_move_less():
    narrow = Options(lv2_limit=160 * KIB, engines=1, objective="dram", regions=False)
    made = compile_with_report(workload("cell_darts"), BASE, options=narrow, jobs=1)
    assert [one.operator for one in made.plan.rewrites if isinstance(one, PiecesRead)] == [
        "cell1.concat", "cell2.concat",
    ]  # fmt: skip
    free = blank(made.graph, BASE, narrow)
    with Desk(1) as desk:
        whole, _ = fill(replace(free, rewrites=()), made.graph, desk)
    spilled = [dict(plan.memory.sizes)[Segment.SCRATCH] for plan in (made.plan, whole)]
    assert spilled[0] < spilled[1]


def test_pieces_have_lives_of_their_own():
    study = memory_study(import_model(workload("cell_darts")), BASE, Options(engines=1))
    peaks = {one.name: one.peak for one in study.orders}
    assert (peaks["model"], peaks["least"], peaks["least, in pieces"]) == (327_680, 294_912, 196_608)
    assert study.proved and not any("concat" in name for name, _ in study.least.alive)


def test_a_plan_in_pieces_is_read_as_it_was_written(tmp_path):
    graph = joined_graph(3)
    image, plan = in_pieces(graph, TINY)
    plan.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    assert read == plan
    with Desk(1) as desk:
        assert emit(read, graph, desk).to_bytes() == image.to_bytes()


def summed() -> tuple[GraphBuilder, str]:
    """A concatenation that a sum reads."""
    make = GraphBuilder(0)
    x = make.input((1, 4, 4, 8))
    joined = make.concat([x, x], 3)
    make.output(make.eltwise("add", joined, joined))
    return make, joined


@pytest.mark.parametrize("name", ["nothing", "summed"])
def test_a_plan_that_cannot_be_is_refused(name):
    make, joined = summed()
    free = blank(make.graph, TINY, Options())
    operator = joined if name == "summed" else name
    with Desk(1) as desk, pytest.raises(CompileError, match=f"the pieces of '{operator}' cannot be read where"):
        fill(replace(free, rewrites=(PiecesRead(operator),)), make.graph, desk)


def test_who_cannot_read_pieces_keeps_the_whole():
    make, _ = summed()
    assert lowered(make.graph, blank(make.graph, TINY, Options())).in_pieces() is None


def test_pieces_whose_bytes_mean_something_else_are_joined():
    graph = joined_graph(2)
    assert lowered(graph, blank(graph, TINY, Options())).in_pieces() is not None
    for op in [op for op in graph.ops if isinstance(op, ir.Concat)]:
        whole = graph.tensors[op.output]
        graph.tensors[op.output] = replace(whole, zero_point=whole.zero_point ^ 1)
    assert lowered(graph, blank(graph, TINY, Options())).in_pieces() is None


@pytest.mark.parametrize("options", [Options(observe=True), Options(placed=True, engines=2)])
def test_observed_and_placed_models_keep_the_whole(options):
    graph = joined_graph(2)
    free = blank(graph, BASE, options)
    assert lowered(graph, free).in_pieces() is None
    operator = next(op.name for op in graph.ops if isinstance(op, ir.Concat))
    with Desk(1) as desk, pytest.raises(CompileError, match="observed models have none, and placed ones no"):
        fill(replace(free, rewrites=(PiecesRead(operator),)), graph, desk)
