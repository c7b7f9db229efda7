"""What is ready and alive behind a set of operators, worked out from the set before: as it is worked out anew."""

import random

import pytest

from compiler.plan.order.graph import HeldTensor, OperatorNode, OrderGraph, members
from compiler.plan.order.greedy import _alive, _state_behind


def random_graph(rng):
    count = rng.randint(1, 14)
    operators = tuple(OperatorNode(str(i), out_bytes=rng.randint(1, 50)) for i in range(count))
    edges = frozenset((a, b) for b in range(count) for a in range(b) if rng.random() < 0.25)
    some = [frozenset(rng.sample(range(count), rng.randint(0, min(3, count)))) for _ in range(4)]
    held = tuple(HeldTensor(rng.randint(1, 30), readers, rng.random() < 0.3) for readers in some[:3])
    return OrderGraph("random", operators, edges, held, some[3])


@pytest.mark.parametrize("seed", range(40))
def test_states_follow_from_each_other(seed):
    rng = random.Random(seed)
    graph = random_graph(rng)
    done, state = 0, (sum(1 << number for number in graph.ready(0)), _alive(graph, 0))
    while done != graph.everything:
        number = rng.choice(list(members(state[0])))
        state = _state_behind(graph, {done: state}, done | 1 << number, number)
        done |= 1 << number
        assert (list(members(state[0])), state[1]) == (graph.ready(done), _alive(graph, done))
