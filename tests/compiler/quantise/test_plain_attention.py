"""Attention and RotaryEmbedding in single operators: the same numbers in float, and in 8 bits on the accelerator."""

import numpy as np
import onnx
import pytest

from compiler import quantise
from compiler.quantise.plain_attention import plain_attention, why_whole
from compiler.quantise.written_nodes import ModelValues, NodeWriter
from sim.host import session
from tests.support.decoder_nets import angles
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net

ROWS, HEADS, WIDTH = 6, 4, 8


def _shape(rank: int, rows: int, heads: int) -> tuple[int, ...]:
    return (2, rows, heads * WIDTH) if rank == 3 else (2, heads, rows, WIDTH)


def _dense(net: Net, x: str, width: int) -> str:
    return net.node("MatMul", [x, net.const(net.rng.normal(0, width**-0.5, (width, width)), np.float32)])


def attention(
    rank: int,
    key_heads: int = HEADS,
    keys: int = ROWS,
    mask=None,
    more: tuple[str, ...] = (),
    dense=False,
    **attributes,
):
    """A model of one Attention; ``mask`` is its constant or the name of an input, ``more``: inputs behind that.
    ``dense``: a product in front of each input."""
    net = Net(opset=23)
    inputs = [
        net.input(_shape(rank, *size), "float32", name)
        for name, size in (("q", (ROWS, HEADS)), ("k", (keys, key_heads)), ("v", (keys, key_heads)))
    ]
    if dense:
        inputs = [
            _dense(net, x, _shape(rank, 1, 1 if rank == 4 else heads)[-1])
            for x, heads in zip(inputs, (HEADS, key_heads, key_heads), strict=True)
        ]
    if mask is not None or more:
        inputs.append("" if mask is None else mask if isinstance(mask, str) else net.const(mask))
    if isinstance(mask, str):
        net.input((ROWS, keys), "float32", mask)
    past = [net.input((2, key_heads, 3, WIDTH), "float32", name) for name in more]
    given = {"q_num_heads": HEADS, "kv_num_heads": key_heads} if rank == 3 else {}
    outputs = 3 if past else 1
    return net.model(net.node("Attention", [*inputs, *past], outputs, **given, **attributes), dtype="float32")


def rotation(rank: int, interleaved: int, part: int, positions: bool, dense: bool = False) -> onnx.ModelProto:
    net = Net(opset=23)
    x = net.input(_shape(rank, ROWS, HEADS), "float32")
    if dense:
        x = _dense(net, x, _shape(rank, ROWS, HEADS)[-1])
    at = net.rng.integers(0, 20, (2, ROWS))
    tables = angles(20, part or WIDTH)
    given = [net.const(table if positions else table[at]) for table in tables]
    given += [net.const(at, np.int64)] if positions else []
    more = {"num_heads": HEADS} if rank == 3 else {}
    more |= {"rotary_embedding_dim": part} if part else {}
    y = net.node("RotaryEmbedding", [x, *given], interleaved=interleaved, **more)
    return net.model(y, dtype="float32")


def _feed(model: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {one.name: [dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in model.graph.input}
    return {name: rng.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def _is_the_same(model: onnx.ModelProto) -> None:
    made, feed = plain_attention(model), _feed(model)
    onnx.checker.check_model(made)
    assert not {"Attention", "RotaryEmbedding"} & {node.op_type for node in made.graph.node}
    wanted, found = (session(one).run(None, feed)[0] for one in (model, made))
    np.testing.assert_allclose(found, wanted, atol=2e-6)


def _runs(model: onnx.ModelProto, path) -> list[str]:
    """Quantise it, and judge what the front end makes of it."""
    quantise.quantise(quantise.prepared(model), [_feed(model, seed) for seed in range(3)], path)
    return kinds(check_model(onnx.load(path)))


def _masks() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    kept = rng.random((ROWS, ROWS)) > 0.3
    kept[:, 0] = True
    return {
        "bool": kept, "infinite": np.where(kept, 0, -np.inf).astype(np.float32),
        "biased": np.where(kept, rng.normal(size=(1, HEADS, ROWS, ROWS)), -1e9).astype(np.float32),
        "bias": rng.normal(size=(1, 1, ROWS, ROWS)).astype(np.float32),
    }  # fmt: skip


@pytest.mark.parametrize("key_heads", [HEADS, 2, 1])
@pytest.mark.parametrize("mask", [None, *_masks()])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_attention_has_the_same_numbers_in_float(rank, causal, mask, key_heads):
    _is_the_same(attention(rank, key_heads, mask=None if mask is None else _masks()[mask], is_causal=causal))


@pytest.mark.parametrize("rank", [3, 4])
def test_other_scales_caps_and_lengths_of_keys(rank):
    _is_the_same(attention(rank, 2, keys=9, scale=0.3, softcap=2.0))


def token(rank: int, key_heads: int, presents: bool = True, past: bool = True, queries: int = 1, **more):
    """A model of Attention of one token over a past whose length is open, or of keys whose number is."""
    net = Net(opset=23)
    shapes = [(2, queries, heads * WIDTH) if rank == 3 else (2, heads, queries, WIDTH) for heads in (HEADS, key_heads)]
    names = [net.input(shapes[0], "float32", "q")]
    if past:
        names += [net.input(shapes[1], "float32", name) for name in "kv"]
        names += ["", *(net.input((2, key_heads, "past", WIDTH), "float32", name) for name in ("pk", "pv"))]
    else:
        shape = (2, "keys", key_heads * WIDTH) if rank == 3 else (2, key_heads, "keys", WIDTH)
        names += [net.input(shape, "float32", name) for name in "kv"]
    given = {"q_num_heads": HEADS, "kv_num_heads": key_heads} if rank == 3 else {}
    net.node("Attention", names, 3 if presents else 1, **given, **more)
    return net.model(*net.nodes[-1].output, dtype="float32")


def _token_feed(model: onnx.ModelProto, length: int) -> dict[str, np.ndarray]:
    rng, shapes = np.random.default_rng(length), {}
    for one in model.graph.input:
        shapes[one.name] = [dim.dim_value or length for dim in one.type.tensor_type.shape.dim]
        if "past" in [dim.dim_param for dim in one.type.tensor_type.shape.dim]:
            shapes[one.name][2] = length
    return {name: rng.normal(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("more", [{}, {"is_causal": 1}, {"softcap": 2.0, "scale": 0.3}])
@pytest.mark.parametrize("key_heads", [HEADS, 2, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_a_token_with_a_past_has_the_same_numbers_in_float(rank, key_heads, more):
    model = token(rank, key_heads, **more)
    made = plain_attention(model)
    onnx.checker.check_model(made)
    assert "Attention" not in {node.op_type for node in made.graph.node}
    for length in (0, 1, 5):
        feed = _token_feed(model, length)
        for wanted, found in zip(*(session(one).run(None, feed) for one in (model, made)), strict=True):
            np.testing.assert_allclose(found, wanted, atol=2e-6)


@pytest.mark.parametrize("rank", [3, 4])
def test_the_number_of_keys_may_be_open(rank):
    model = token(rank, 2, presents=False, past=False)
    made, feed = plain_attention(model), _token_feed(model, 7)
    assert "Attention" not in {node.op_type for node in made.graph.node}
    wanted, found = (session(one).run(None, feed)[0] for one in (model, made))
    np.testing.assert_allclose(found, wanted, atol=2e-6)


@pytest.mark.parametrize("part", [0, 4])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_rows_at_positions_of_run_time(rank, interleaved, part):
    model = rotation(rank, interleaved, part, True)
    (kept,) = [tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.INT64]
    model.graph.initializer.remove(kept)
    model.graph.input.append(onnx.helper.make_tensor_value_info(kept.name, onnx.TensorProto.INT64, kept.dims))
    made, feed = plain_attention(model), _feed(model) | {kept.name: np.arange(2 * ROWS).reshape(2, ROWS)}
    assert [node.op_type for node in made.graph.node].count("Gather") == 2
    wanted, found = (session(one).run(None, feed)[0] for one in (model, made))
    np.testing.assert_allclose(found, wanted, atol=2e-6)


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("part", [0, 4])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_a_rotation_has_the_same_numbers_in_float(rank, interleaved, part, positions):
    _is_the_same(rotation(rank, interleaved, part, positions))


@pytest.mark.parametrize("mask", [None, "bool", "biased"])
@pytest.mark.parametrize("rank", [3, 4])
def test_the_accelerator_runs_a_quantised_attention(rank, mask, tmp_path):
    model = attention(rank, 2, mask=None if mask is None else _masks()[mask], is_causal=1, dense=True)
    found = _runs(model, tmp_path / "q.onnx")
    assert found.count("product") == 2 and found.count("softmax") == 1 and "host" not in found
    if mask != "biased":  # scores are stored once, in the steps that the mask leaves them
        between = found[found.index("product") + 1 : found.index("softmax")]
        assert [kind for kind in between if kind != "reshape"] == ["eltwise"]


@pytest.mark.parametrize("part", [0, 4])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_the_accelerator_runs_a_quantised_rotation(rank, interleaved, part, tmp_path):
    found = _runs(rotation(rank, interleaved, part, True, dense=True), tmp_path / "q.onnx")
    assert "eltwise" in found and "host" not in found


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: attention(3, more=("pk", "pv")), "it has past keys and values, and more than one token"),
        (lambda: token(3, 2, queries=2), "it has past keys and values, and more than one token"),
        (lambda: token(4, 2, queries=2, presents=False, past=False), "it has past keys and values, and more than one"),
        (lambda: token(4, 2, is_causal=1, presents=False, past=False), "it is causal, and the number of its keys is"),
        (lambda: token(4, 2, past=False), "it has present keys and values, and no past ones"),
        (lambda: attention(4, mask="mask"), "its mask is computed"),
        (lambda: attention(4, mask=np.tri(ROWS, k=-1, dtype=bool)), "its mask leaves a query no key"),
    ],
)
def test_what_stays_a_node(model, reason):
    made = model()
    (node,) = made.graph.node
    assert why_whole(NodeWriter(node, ModelValues.of(made))).startswith(reason)
    assert [node.op_type for node in plain_attention(made).graph.node] == ["Attention"]


def test_open_shapes_stay():
    model = attention(3)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    (node,) = model.graph.node
    assert "its shapes are not known" in why_whole(NodeWriter(node, ModelValues.of(model)))
