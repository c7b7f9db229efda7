import itertools

import pytest

from benchmarks.order_search.price import ChipModel, OrderPrice
from compiler.plan.order.graph import HeldTensor, OperatorNode, OrderGraph
from compiler.plan.order.orders import every_order
from compiler.plan.order.residency import alive_bytes, peak_bytes, spills, total_bytes
from tests.support.order_graphs import random_graph

ROOMY = 1 << 40


def chain(*operators):
    return OrderGraph("chain", operators, frozenset(itertools.pairwise(range(len(operators)))))


def apart(*operators):
    return OrderGraph("apart", operators, frozenset())


def price(graph, order=None, **chip):
    return OrderPrice(graph, ChipModel(**{"on_chip_bytes": ROOMY, "dram_bytes_per_cycle": 8.0, **chip}))(
        order or graph.source
    )


MATRIX, VECTOR = OperatorNode("m", matrix=100), OperatorNode("v", vector=60)


def test_units_run_side_by_side_and_each_in_order():
    assert price(apart(MATRIX, VECTOR)) == 100
    assert price(apart(MATRIX, MATRIX)) == 200
    assert price(chain(MATRIX, VECTOR)) == 160


def test_tiles_overlap():
    """The reader begins after a quarter and ends a quarter of its own time after its operand, if not later."""
    assert price(chain(MATRIX, VECTOR), tile=0.25) == 115
    assert price(chain(VECTOR, MATRIX), tile=0.25) == 15 + 100


def test_vector_part_follows_the_matrix_part():
    both = OperatorNode("conv", matrix=100, vector=60)
    assert price(apart(both)) == 160
    assert price(apart(both), tile=0.25) == 115
    assert price(apart(both, both)) == 260


def test_loads_run_ahead():
    loaded = OperatorNode("loaded", load=50, matrix=100)
    assert price(apart(loaded, loaded)) == 250
    assert price(apart(MATRIX, loaded), ahead=1) == 200
    waiting = [MATRIX, MATRIX, OperatorNode("late", load=150, matrix=10)]
    assert price(apart(*waiting)) == 210
    assert price(apart(*waiting), ahead=1) == 100 + 150 + 10


def test_issue_is_in_order():
    """The matrix operator at the end waits until the vector operator before it has begun, unless the window is wide."""
    graph = OrderGraph("window", (MATRIX, VECTOR, VECTOR, MATRIX), frozenset({(0, 1), (1, 2)}))
    assert price(graph) == 160 + 100
    assert price(graph, window=2) == 220
    assert price(graph, order=(0, 3, 1, 2)) == 220


def test_worst_and_best_differ_by_the_order():
    graph = OrderGraph("pairs", (VECTOR, MATRIX, MATRIX, VECTOR), frozenset({(0, 1), (2, 3)}))
    prices = {order: price(graph, order) for order in every_order(graph)}
    assert prices[0, 1, 2, 3] == 60 + 100 + 100 + 60
    assert min(prices.values()) == prices[2, 0, 1, 3] == 200


def test_alive_bytes():
    operators = tuple(OperatorNode(f"op{i}", out_bytes=10 << i, param_bytes=1) for i in range(4))
    graph = OrderGraph(
        "alive", operators, frozenset({(0, 1), (0, 2), (1, 3), (2, 3)}), (HeldTensor(1000, frozenset({1})),),
    )  # fmt: skip
    assert alive_bytes(graph, (0, 1, 2, 3)) == [1011, 1031, 71, 141]
    assert alive_bytes(graph, (0, 2, 1, 3)) == [1011, 1051, 1071, 141]
    assert peak_bytes(graph, (0, 2, 1, 3)) == 1071
    assert total_bytes(graph) == 1151


def test_what_is_needed_afterwards_stays():
    graph = OrderGraph(
        "kept", (OperatorNode("a", out_bytes=10), OperatorNode("b", out_bytes=5)), frozenset(),
        (HeldTensor(100, survives=True),), frozenset({0}),
    )  # fmt: skip
    assert alive_bytes(graph, (0, 1)) == [110, 115]


def diamond(sizes):
    operators = tuple(OperatorNode(f"op{i}", vector=1, out_bytes=size) for i, size in enumerate(sizes))
    return OrderGraph("diamond", operators, frozenset({(0, 1), (0, 3), (1, 2), (2, 3)}))


def test_a_tensor_goes_out_once_and_comes_back():
    """Operator 2 needs 48 + 48 bytes; operator 0's 16 make room before it and come back for operator 3."""
    graph = diamond([16, 48, 48, 16])
    assert spills(graph, graph.source, 200) == []
    assert spills(graph, graph.source, 100) == [0, 0, 16, 16]
    timeline = OrderPrice(graph, ChipModel(100, 8.0)).timeline(graph.source)
    assert (timeline.peak_bytes, timeline.spilled_bytes) == (112, 32)
    assert timeline.cycles > price(graph)
    assert [span.operator for span in timeline.spans if span.unit == "load"] == [2, 3]


def test_the_tensor_read_last_is_spilled_first():
    """Before operator 2 either of two may go: 1, which is read next, or 0, which is read at the end."""
    operators = tuple(OperatorNode(f"op{i}", out_bytes=40) for i in range(5))
    graph = OrderGraph("belady", operators, frozenset({(0, 4), (1, 3), (2, 3), (3, 4)}))
    assert spills(graph, graph.source, 120) == [0, 0, 0, 40, 40]


def test_an_operator_too_large_is_streamed():
    graph = apart(OperatorNode("large", vector=1, out_bytes=100, param_bytes=30))
    assert spills(graph, (0,), 80) == [100]


def test_a_result_needed_later_comes_back_at_the_end():
    operators = (OperatorNode("a", out_bytes=60), OperatorNode("b", out_bytes=60), OperatorNode("c", out_bytes=1))
    graph = OrderGraph("later", operators, frozenset({(1, 2)}), (), frozenset({0}))
    assert spills(graph, (0, 1, 2), 100) == [0, 60, 60]


@pytest.mark.parametrize("seed", range(10))
def test_spills_exactly_where_the_peak_exceeds_memory(seed):
    graph = random_graph(seed, 9)
    order = graph.source
    peak = peak_bytes(graph, order)
    assert spills(graph, order, peak) == []
    assert sum(spills(graph, order, peak - 1)) > 0
    cycles = [price(graph, order, on_chip_bytes=peak * part // 8, dram_bytes_per_cycle=0.5) for part in (8, 4, 2)]
    assert cycles == sorted(cycles)
    assert cycles[0] < cycles[-1]


@pytest.mark.parametrize("seed", range(10))
def test_price_stays_within_what_units_and_chains_allow(seed):
    graph = random_graph(seed, 9)
    for order in itertools.islice(every_order(graph), 50):
        timeline = OrderPrice(graph, ChipModel(ROOMY, 8.0)).timeline(order)
        work = {unit: sum(getattr(node, unit) for node in graph.operators) for unit in ("load", "matrix", "vector")}
        assert max(work.values()) <= timeline.cycles <= sum(work.values())
        for unit in work:
            spans = sorted((s.begin, s.end) for s in timeline.spans if s.unit == unit)
            assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
        begun = {}
        for span in timeline.spans:
            begun.setdefault(span.operator, []).append(span)
        for producer, reader in graph.edges:
            computing = [s for s in begun[reader] if s.unit != "load"]
            assert min(s.begin for s in computing) >= max(s.end for s in begun[producer])


def test_chip_models_are_checked():
    with pytest.raises(ValueError, match="on_chip_bytes of a chip model must be more than 0"):
        ChipModel(0, 8.0)
    with pytest.raises(ValueError, match="tile of a chip model"):
        ChipModel(1, 8.0, tile=0.0)
    with pytest.raises(ValueError, match="window and ahead"):
        ChipModel(1, 8.0, window=0)
