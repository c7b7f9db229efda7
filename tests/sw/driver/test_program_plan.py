"""Segments of kernels are laid over each other only where tensors agree, and none comes where another is read."""

from dataclasses import replace

import pytest

from compiler import DynamicDimension, compile_model, operations_of
from hw.contract.params import preset
from sw.driver import KernelUse, ProgramPlanner
from tests.support.operation_nets import attention_net


@pytest.fixture(scope="module")
def uses():
    operations = operations_of(DynamicDimension.of(attention_net([(2, 8)], 12)))
    return [
        KernelUse(each.name, compile_model(each.dimension.fixed(9), preset("tiny")), each.inputs, each.outputs)
        for each in operations
    ]


def planner_of(uses):
    readers = {}
    for name in [name for use in uses for name in use.inputs.values()] + [*uses[-1].outputs.values()]:
        readers[name] = readers.get(name, 0) + 1
    return ProgramPlanner(readers)


def changed(use, **how):
    """Return a use of which the first input is another tensor."""
    meta = use.image.meta
    (port, *ports), tensors = meta.inputs, meta.tensors
    made = [replace(each, **how) if each.name == port.tensor else each for each in tensors]
    image = replace(use.image, meta=replace(meta, tensors=made, inputs=[port, *ports]))
    return replace(use, image=image)


def test_inputs_lie_where_outputs_were_written(uses):
    planner = planner_of(uses)
    assert [planner.add(use) for use in uses] == [None] * 3
    plan = planner.plan("net")
    assert [each.name for each in plan.inputs] == ["x"] and len(plan.outputs) == 1
    assert plan.inputs_at[1] == plan.outputs_at[0] and plan.inputs_at[2] == plan.outputs_at[1]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"scale": 0.5}, "has scale 0.02 and zero point 3, its kernel reads 0.5 and 3"),
        ({"zero_point": 7}, "has scale 0.02 and zero point 3, its kernel reads 0.02 and 7"),
        ({"dtype": "uint8"}, "is int8 where its kernel reads uint8"),
        ({"offset": 640}, "does not lie beside other inputs as its kernel reads them"),
    ],
)
def test_tensors_that_do_not_agree_are_named_and_nothing_changes(uses, how, told):
    planner = planner_of(uses)
    assert planner.add(uses[0]) is None
    assert planner.add(changed(uses[1], **how)).endswith(told)
    assert len(planner) == 1 and planner.add(uses[1]) is None


def test_another_order_in_memory_is_named(uses):
    planner = planner_of(uses)
    assert planner.add(uses[0]) is None
    meta = uses[1].image.meta
    turned = replace(meta.inputs[0], perm=[0, 2, 1])
    other = replace(uses[1], image=replace(uses[1].image, meta=replace(meta, inputs=[turned, *meta.inputs[1:]])))
    assert "lies in memory in the order of" in planner.add(other)


def test_no_tensor_comes_where_another_is_read_later(uses):
    """A kernel that reads the sums right behind the first of three tensors would have them where the second lies, which
    is read in the end."""
    first, attention, _ = uses
    query, key, value = attention.inputs.values()
    (sums,) = attention.outputs.values()
    both = replace(attention, name="both", inputs={"x0": query, "x1": sums}, outputs={"t": "z"})
    port = attention.image.meta.outputs[0]
    meta = attention.image.meta
    tensors = [
        replace(each, scale=attention.image.tensor(port.tensor).scale) if each.name == "x1" else each
        for each in meta.tensors
    ]
    image = replace(attention.image, meta=replace(meta, tensors=tensors, outputs=[replace(port, name="t")]))
    readers = {"x": 1, query: 2, key: 1, value: 1, sums: 1, "z": 1}
    for later in (1, 0):  # it is read in the end, or while the sums are written
        planner = ProgramPlanner({**readers, key: readers[key] + later})
        assert planner.add(first) is None and planner.add(attention) is None
        assert "would lie in the same place" in planner.add(replace(both, image=image))
