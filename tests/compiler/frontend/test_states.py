"""States of decoders: what is one, what the accelerator makes of it, and what is refused."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from compiler import CompileError, UnsupportedModel, import_model, ir, reference
from sim.host import session
from tests.support.small_step import SIZE, STEP, small_step

ROWS = 11  #: of the past


def graph_of(model: onnx.ModelProto, rows: int = ROWS) -> ir.Graph:
    return import_model(model, sizes={"past": rows})


def feed_of(key_heads: int, rows: int = ROWS, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    past = {
        name: rng.normal(0, 40 * STEP, (1, key_heads, rows, SIZE)).astype(np.float32)
        for name in ("past_key", "past_value")
    }
    return {"ids": np.array([[7]]), "position": np.array([[rows]]), **past}


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_a_step_equals_onnxruntime(key_heads):
    model = small_step(key_heads=key_heads)
    graph, feed = graph_of(model), feed_of(key_heads)
    wanted = session(model).run(None, feed)
    for found, other in zip(reference.run(graph, feed).values(), wanted, strict=True):
        np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize("key_heads", [2, 4])
def test_heads_are_shared_and_nothing_is_copied_or_left_to_the_cpu(key_heads):
    kinds = [op.kind for op in graph_of(small_step(key_heads=key_heads)).ops if not op.renames]
    assert sorted(kinds) == sorted(
        ["lookup"] * 2 + ["eltwise"] + ["conv"] * 4 + ["stateload", "append"] * 2 + ["product"] * 2 + ["softmax"]
    )


def test_numbers_have_the_ranges_of_tables_and_rows():
    graph = graph_of(small_step())
    assert graph.numbers == {
        "ids": ir.NumberRange(0, 39),
        "position": ir.NumberRange(0, 31),
        "past": ir.NumberRange(0, ROWS),
    }


@pytest.mark.parametrize("filled", [0, 1, 5, ROWS])
def test_rows_that_are_not_filled_do_not_count(filled):
    """A step over the first rows of a longer state equals one whose past is these rows."""
    model, feed = small_step(), feed_of(2)
    short = {name: value[:, :, :filled] if name.startswith("past") else value for name, value in feed.items()}
    found = reference.run(graph_of(model), {**feed, "past": filled})
    wanted = session(model).run(None, short)
    assert np.abs(found["y"] - wanted[0]).max() <= 0.0973 + 1e-6  # a step of the result
    for name, other in zip(("key", "value"), wanted[1:], strict=True):
        np.testing.assert_array_equal(found[name][:, :, : filled + 1], other)


def changed(model: onnx.ModelProto, kind: str, **attributes) -> onnx.ModelProto:
    """A copy in which attributes of all nodes of a kind are others."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for node in made.graph.node:
        if node.op_type == kind:
            for name, value in attributes.items():
                node.attribute.extend([helper.make_attribute(name, value)])
    return made


def test_a_present_in_other_steps_is_refused_by_name():
    model = small_step()
    concat = next(node for node in model.graph.node if node.op_type == "Concat")
    stored = next(node for node in model.graph.node if concat.output[0] in node.input)
    scale = numpy_helper.from_array(np.float32(2 * STEP), "other")
    model.graph.initializer.append(scale)
    stored.input[1] = "other"
    with pytest.raises(UnsupportedModel, match="not stored like the input 'past_key', to which it comes back"):
        graph_of(model)


def test_several_rows_at_a_time_are_refused():
    net = small_step()
    shapes = [one for one in net.graph.initializer if list(numpy_helper.to_array(one).reshape(-1)) == [1, 1, 2, SIZE]]
    assert shapes
    for one in shapes:  # as if a head were a row
        one.CopyFrom(numpy_helper.from_array(np.array([1, 2, 1, SIZE]), one.name))
    with pytest.raises(UnsupportedModel, match=r"adds 2 rows to the state 'past_key'"):
        graph_of(net)


def test_an_operator_that_reads_all_rows_is_refused():
    model = small_step()
    softmax = next(node for node in model.graph.node if node.op_type == "Softmax")
    softmax.op_type = "Sigmoid"
    del softmax.attribute[:]
    with pytest.raises(CompileError, match="reads rows of a state, filled or not"):
        graph_of(model)


def test_few_lookups_are_numbers_and_the_others_are_left_to_the_cpu():
    from tests.support.onnx_models import Net

    net = Net(13)
    parts = []
    for number in range(6):
        index = net.input((1, 1), "int64", f"c{number}")
        table = net.const(net.array((9, 8 * (number + 1))))
        parts.append(net.dq(net.node("Gather", [table, index]), 0.02))
    model = net.model(net.q(net.node("Concat", parts, axis=2), 0.02))
    graph = import_model(model)
    kinds = [op.kind for op in graph.ops]
    assert kinds.count("lookup") == 4 and kinds.count("host") == 2
    feed = {f"c{number}": np.array([[number]]) for number in range(6)}
    (found,) = reference.run(graph, feed).values()
    np.testing.assert_array_equal(found, session(model).run(None, feed)[0])
