import json
import time

import pytest

import compiler.plan.order
from benchmarks.order_search.estimate import chip_model, order_graph
from benchmarks.order_search.lower_bound import quick_bound
from benchmarks.order_search.price import ChipModel, OrderPrice
from benchmarks.workloads import workload
from compiler.frontend import import_model
from compiler.ir import Conv, Reshape
from compiler.plan.order.graph import MANY, OperatorNode, OrderGraph
from compiler.plan.order.model import order_model
from compiler.plan.order.report import LowerBound
from compiler.plan.order.search import SearchLimits
from hw.contract.params import preset
from tests.test_imports import MODULES, imports

CHIP = ChipModel(1 << 40, 8.0)


def price_of(graph):
    return OrderPrice(graph, CHIP)


def bound_of(graph):
    return LowerBound(quick_bound(graph, CHIP), False)


def diamonds(count):
    """A row of diamonds with a matrix and a vector branch, the vector branch first in source order."""
    operators, edges = [OperatorNode("begin", matrix=10)], set()
    for number in range(count):
        start = 4 * number
        operators += [
            OperatorNode(f"{number}.v", vector=30), OperatorNode(f"{number}.m", matrix=30),
            OperatorNode(f"{number}.w", vector=10), OperatorNode(f"{number}.end", matrix=10),
        ]  # fmt: skip
        edges |= {(start, start + 1), (start, start + 2), (start + 2, start + 3)}
        edges |= {(start + 1, start + 4), (start + 3, start + 4)}
    return OrderGraph("diamonds", tuple(operators), frozenset(edges))


def test_subgraphs_are_searched_alone_and_linked():
    graph = diamonds(3)
    report = order_model(graph, price_of, bound_of)
    assert graph.is_order(report.order)
    assert [part.orders.value for part in report.subgraphs] == [3, 3, 3]
    assert all(part.complete and part.tried == 3 for part in report.subgraphs)
    assert all(part.lower_bound <= part.best <= min(part.source, part.greedy) for part in report.subgraphs)
    assert [name for part in report.subgraphs for name in part.operators] == [
        graph.operators[number].name for number in report.order
    ]


def test_report_is_ready_for_json():
    report = order_model(diamonds(2), price_of, bound_of)
    told = json.loads(json.dumps(report.to_dict()))
    assert told["subgraphs"][0] | {"operators": None, "name": None} == {
        "name": None, "operators": None, "orders": 3, "tried": 3, "complete": True, "good_enough": False,
        "best": report.subgraphs[0].best, "worst": report.subgraphs[0].worst, "source": report.subgraphs[0].source,
        "greedy": report.subgraphs[0].greedy, "lower_bound": report.subgraphs[0].lower_bound, "exact_bound": False,
    }  # fmt: skip
    assert told["best"] == sum(part.best for part in report.subgraphs)


def test_time_is_kept_and_progress_told():
    told = []

    def slow(graph):
        price = price_of(graph)
        return lambda order: time.sleep(0.01) or price(order)

    limits = SearchLimits(few=1, tries=10**6, seconds=0.3)
    began = time.monotonic()
    graph = OrderGraph("wide", tuple(OperatorNode(f"op{i}", matrix=1) for i in range(10)), frozenset())
    report = order_model(graph, slow, bound_of, limits, progress=lambda *now: told.append(now))
    assert 0.3 < time.monotonic() - began < 1.5
    assert {name for name, _, _ in told} == {"wide[0]"}
    assert report.subgraphs[0].tried == told[-1][1] < 60


@pytest.fixture(scope="module")
def small_model():
    return import_model(workload("inception_small"))


def test_a_model_by_the_parameters_of_its_chip(small_model):
    params = preset("tiny")
    graph = order_graph(small_model, params)
    operations = {op.name: op for op in small_model.ops if not isinstance(op, Reshape)}
    assert [node.name for node in graph.operators] == list(operations)
    for node in graph.operators:
        op = operations[node.name]
        if isinstance(op, Conv):
            macs = small_model.tensors[op.output].size * op.weights[0].size
            assert macs / params.macs <= node.matrix
            assert node.param_bytes >= op.weights.nbytes
            assert node.load >= node.param_bytes / params.dram_bytes_per_cycle
        if op.kind == "concat":
            assert node.matrix == 0 < node.vector
    assert graph.operators[-1].out_bytes == 0, "the model's output goes to DRAM"
    assert chip_model(params).on_chip_bytes < params.lv2_bytes


def test_inception_modules_become_subgraphs(small_model):
    params = preset("tiny")
    graph, chip = order_graph(small_model, params), chip_model(params)
    report = order_model(
        graph, lambda part: OrderPrice(part, chip), lambda part: LowerBound(quick_bound(part, chip), False),
        SearchLimits(few=50, samples=10, tries=60),
    )  # fmt: skip
    assert len(report.subgraphs) == 2
    assert all(part.orders.value > 600 for part in report.subgraphs)
    assert graph.is_order(report.order)


def test_knows_nothing_of_the_back_end():
    rooms = [name for name in MODULES if name.startswith("compiler.plan.order")]
    assert compiler.plan.order.__name__ in rooms
    assert len(rooms) > 10
    for name in rooms:
        for other in imports(MODULES[name]):
            assert other.startswith(("compiler.plan.order", "hw.contract")) or other == "compiler.ir", (
                f"{name}: {other}"
            )


@pytest.mark.slow
def test_in_a_large_graph_the_orders_of_all_subgraphs_are_limited_together():
    """Not those of each: there may be many, and a price of regions takes longer the more of them it has not seen."""
    branches = [OperatorNode("branch", matrix=30 + number, vector=20) for number in range(40)]
    operators, edges = [OperatorNode("begin", matrix=10)], set()
    for block in range(6):
        first = len(operators)
        operators += [*branches, OperatorNode(f"{block}.end", matrix=10)]
        edges |= {(first - 1, first + i) for i in range(40)} | {(first + i, first + 40) for i in range(40)}
    graph = OrderGraph("wide", tuple(operators), frozenset(edges))
    assert len(graph) > MANY
    limits = SearchLimits(few=0, samples=10, tries=100, placed=6000)
    report = order_model(graph, price_of, bound_of, limits)
    firsts = 4 * len(graph)  # the source order, greedy ones, and that of the least memory
    assert sum(part.tried * len(part.operators) for part in report.subgraphs) <= limits.placed + firsts
