"""A step of several sequences: what the reference gives for each alone, weights once."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.workloads import decoder_steps
from compiler import ALL_LV2, CompileError, Options, compile_with_report, import_model, reference
from hw.contract.formats import PARAMETERS
from hw.contract.params import preset
from tests.support.onnx_models import Net
from tests.support.small_step import KEY_HEADS, SIZE, small_step

ROWS = 9


def test_each_sequence_gives_what_it_gives_alone():
    """Also at other tokens, other positions and with other rows filled."""
    rng, filled = np.random.default_rng(3), [0, 4, ROWS]
    one, several = (import_model(small_step(), sizes={"past": ROWS}, sequences=n) for n in (1, 3))
    together, alone = {}, []
    for i, rows in enumerate(filled):
        past = {
            name: rng.normal(0, 2, (1, KEY_HEADS, ROWS, SIZE)).astype(np.float32) for name in ("past_key", "past_value")
        }
        feed = {"ids": rng.integers(0, 40, (1, 1)), "position": rng.integers(0, 32, (1, 1)), "past": rows, **past}
        alone.append(reference.run(one, feed))
        together |= {f"{name}.{i}": value for name, value in feed.items()}
    found = reference.run(several, together)
    assert found["y"].shape == (3, 1, 40)
    for i, wanted in enumerate(alone):
        np.testing.assert_array_equal(found["y"][i : i + 1], wanted["y"])
        for name in ("key", "value"):
            np.testing.assert_array_equal(found[f"{name}.{i}"], wanted[name])


@pytest.mark.parametrize("name", ["stories15m_1_context12", "gpt2_block_context12"])
def test_weights_are_multiplied_once(name):
    """Turned heads, gates and norms, too, are computed for all sequences at once; attention is for each."""
    step = decoder_steps.parse(name)
    model = decoder_steps.model(step, 1)
    kinds = [
        Counter(op.kind for op in import_model(model, sizes={decoder_steps.PAST: 11}, sequences=n).ops) for n in (1, 4)
    ]
    for kind in ("conv", "lookup", "eltwise", "table", "rmsnorm", "layernorm"):
        assert kinds[0][kind] == kinds[1][kind]
    for kind in ("append", "product", "softmax", "stateload"):
        assert 4 * kinds[0][kind] == kinds[1][kind] > 0


@pytest.mark.slow
def test_a_region_needs_no_more_parameters_than_a_job_carries():
    """Attention of two sequences in one region would need more."""
    model = decoder_steps.model(decoder_steps.parse("stories15m_1_context12"), 1)
    options = Options(engines=1, lv2_limit=ALL_LV2)
    image = compile_with_report(
        model, preset("base"), sizes={decoder_steps.PAST: 11}, sequences=4, jobs=1, options=options
    ).image
    carried = [len(job.parameters) for job in image.meta.jobs]
    assert 4 < max(carried) <= PARAMETERS < len(image.meta.parameters)


@pytest.mark.parametrize(("count", "message"), [(0, "0 sequences; there must be one"), (-1, "-1 sequences")])
def test_impossible_counts_are_refused(count, message):
    with pytest.raises(CompileError, match=message):
        import_model(small_step(), sizes={"past": ROWS}, sequences=count)


def test_a_model_without_a_state_is_refused():
    net = Net(21, 0)
    x = net.dq(net.q(net.input((1, 8), "float32", "x"), 0.1), 0.1)
    y = net.dq(net.q(net.node("MatMul", (x, net.dq(net.const(net.array((8, 8), limit=9)), 0.1))), 0.1), 0.1)
    graph = helper.make_graph(
        net.nodes, "plain", net.inputs, [helper.make_tensor_value_info(y, TensorProto.FLOAT, (1, 8))], net.initializers
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    with pytest.raises(CompileError, match="compile it with batch=2"):
        import_model(model, sequences=2)
