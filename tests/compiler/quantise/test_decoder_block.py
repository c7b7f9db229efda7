"""A Llama-shaped block, quantised by the project's own path: all of it runs on the accelerator in all its forms."""

import numpy as np
import onnx
import pytest

from compiler import quantise, reference
from compiler.frontend import import_model
from sim.host import session
from tests.support.decoder_nets import Block, decoder_block
from tests.support.fast_run import equals_onnxruntime
from tests.support.golden_check import check_graph, kinds

BLOCKS = {
    "operators": Block(),
    "operators, one key head": Block(key_heads=1, gate="Gelu"),
    "operators, odd sizes": Block(length=13, width=72, heads=6, key_heads=3, wide=100),
    "written out": Block(opset=17, operators=False),
    "written out, opset 23": Block(operators=False, quotient="div", gate="Gelu"),
    "written out, both scaled": Block(opset=18, operators=False, masked=-np.inf, scaled="both", quotient="one"),
    "as GPT-2": Block(opset=17, older=True),
    "written out, -1e9": Block(opset=14, operators=False, masked=-1e9, quotient="rsqrt", heads=2),
}


@pytest.fixture(scope="module", params=BLOCKS)
def quantised(request, tmp_path_factory):
    block, rng = BLOCKS[request.param], np.random.default_rng(1)
    model, path = decoder_block(block), tmp_path_factory.mktemp("block") / "q.onnx"
    feeds = [block.feed(rng) for _ in range(4)]
    quantise.quantise(quantise.prepared(model), feeds, path)
    return model, path, feeds


def test_it_is_near_the_float_one(quantised):
    model, path, feeds = quantised
    wanted, found = (np.stack([session(one).run(None, feed)[0] for feed in feeds]) for one in (model, onnx.load(path)))
    assert 10 * np.log10(np.square(wanted).sum() / np.square(wanted - found).sum()) > 27


def test_every_operator_keeps_to_the_contract(quantised):
    _, path, feeds = quantised
    graph = import_model(path)
    found = kinds(graph)
    norms = found.count("rmsnorm") + found.count("layernorm")
    assert (norms, found.count("softmax"), found.count("product")) == (2, 1, 2)
    assert "host" not in found
    for check in check_graph(graph, reference.run_all(graph, feeds[0])):
        assert check.ok, check


def test_the_whole_is_that_of_the_nodes_as_they_are_written(quantised):
    _, path, feeds = quantised
    graph = import_model(path)
    (found,) = reference.run(graph, feeds[0]).values()
    (wanted,) = session(onnx.load(path), as_written=True).run(None, feeds[0])
    steps = np.abs(found - wanted) / graph.tensors[graph.outputs[0].tensor].scale
    assert (steps > 0.5).mean() < 0.03 and steps.max() < 2.5


def test_a_later_token_changes_nothing_before_it(quantised):
    _, path, feeds = quantised
    graph, changed = import_model(path), {"x": feeds[0]["x"].copy()}
    changed["x"][:, -1] = 3
    before, after = (next(iter(reference.run(graph, feed).values())) for feed in (feeds[0], changed))
    np.testing.assert_array_equal(before[:, :-1], after[:, :-1])
    assert (before[:, -1] != after[:, -1]).any()


@pytest.mark.parametrize("name", ["operators", "written out"])
def test_through_the_system(name, tmp_path):
    block, rng = BLOCKS[name], np.random.default_rng(1)
    quantise.quantise(quantise.prepared(decoder_block(block)), [block.feed(rng) for _ in range(4)], tmp_path / "q.onnx")
    equals_onnxruntime(tmp_path / "q.onnx", "tiny", least=0.99, as_written=True)
