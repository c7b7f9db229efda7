"""Instructions in pieces: the same memories, however large the pieces are."""

from itertools import product

import numpy as np
import pytest

from compiler.frontend import import_model
from compiler.pipeline import build
from hw.contract.params import preset
from sim.functional import copies, mac, vector
from sim.functional.strided import cut, pieces, whole
from tests.support.graphs import random_inputs
from tests.support.image_runner import run_image
from tests.support.random_graphs import random_graph

TINY = preset("tiny")


@pytest.mark.parametrize(("loops", "inner", "most"), [((3, 4, 5), 2, 7), ((7,), 1, 3), ((2, 3), 9, 1), ((4, 4), 1, 99)])
def test_pieces_are_all_turns_in_order(loops, inner, most):
    found = []
    for piece in pieces(loops, inner, most):
        turns = list(product(*(range(each.start, each.stop) for each in whole(piece, loops))))
        assert len(turns) * inner <= most or len(turns) == 1
        found += turns
    assert found == list(product(*map(range, loops)))


def test_a_clip_is_cut_where_a_piece_is():
    for low, high in ((0, 9), (3, 5), (6, 6), (8, 3)):
        here, there = np.zeros(9, int), np.arange(low, max(low, high))
        for begin in range(0, 9, 2):
            piece = slice(begin, min(9, begin + 2))
            to, taken = cut(piece, low, high)
            here[piece][to] = there[taken] + 1
        assert [*here] == [at + 1 if low <= at < high else 0 for at in range(9)]


@pytest.mark.parametrize("seed", range(4))
def test_networks_in_small_pieces(monkeypatch, seed):
    graph = import_model(random_graph(seed))
    image, given = build(graph, TINY)[0], random_inputs(graph, seed)
    inputs = {port.name: np.ascontiguousarray(given[port.name].transpose(port.perm)) for port in image.meta.inputs}
    expected = run_image(image, inputs)
    for module in (copies, mac, vector):
        monkeypatch.setattr(module, "pieces", lambda loops, inner, most=0: pieces(loops, inner, 48))
    for module in (copies, vector):
        monkeypatch.setattr(module, "MOST", 48)
    monkeypatch.setattr(mac, "_PIXELS_MOST", 48)
    for name, value in run_image(image, inputs).items():
        assert np.array_equal(value, expected[name]), name
