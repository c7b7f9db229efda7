"""``caesura quantise`` of decoders of one token."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import caesura
from caesura.commands.quantise import quantise
from caesura.quantisation import QuantisationRequest, quantised
from compiler import states_of
from tests.support.step_models import StepNet, run_steps, step_model

NET = StepNet(layers=1)


@pytest.fixture
def files(tmp_path):
    onnx.save(step_model(NET), tmp_path / "float.onnx")
    np.savez(tmp_path / "prompts.npz", input_ids=NET.tokens(3, 10))
    return tmp_path


def test_it_is_run_token_by_token(files, capsys):
    quantise(files / "float.onnx", files / "prompts.npz", files / "q.onnx")
    told = " ".join(capsys.readouterr().out.split())
    assert f"ranges from 30 steps, 3 sequences of {files / 'prompts.npz'}" in told
    assert "logits " in told and "states " in told and "present" not in told.split("it has")[0]
    assert "it has 2 states, each with one scale" in told
    assert "with --dim past=9 the accelerator runs all of it" in told and "but what" not in told
    made = onnx.load(files / "q.onnx")
    assert len(states_of(made).found) == 2
    assert len(list(run_steps(made, NET, NET.tokens(1, 5)[0]))) == 5


def test_as_json(files, capsys):
    quantise(
        files / "float.onnx", files / "prompts.npz", files / "q.onnx", samples=2, activations="uint8", as_json=True
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["samples"], found["steps"], found["sizes"]) == (2, 20, {"past": 9})
    assert found["states"] == ["present.0.key", "present.0.value"] and not found["refused"]
    assert set(found["sqnr_db"]) == {"logits", *found["states"]} and min(found["sqnr_db"].values()) > 25


def _refuse(folder: Path, model: str, data: str = "prompts.npz", sizes: dict[str, int] | None = None) -> None:
    """Quantise in this process, which is quicker."""
    asked = QuantisationRequest(str(folder / model), str(folder / data), None, sizes or {}, "int8", False)
    quantised(asked, folder / "q.onnx", lambda _: None)


def _with_mask(model: onnx.ModelProto) -> None:
    model.graph.input.append(onnx.helper.make_tensor_value_info("attention_mask", onnx.TensorProto.INT64, (1, "all")))


def _with_other_order(model: onnx.ModelProto) -> None:
    (concat,) = (node for node in model.graph.node if node.output[0] == "present.0.value")
    concat.input[:] = concat.input[::-1]


def _without_presents(model: onnx.ModelProto) -> None:
    del model.graph.output[1:]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            _with_mask,
            "input 'attention_mask' goes with the states, .* so it needs no mask: export the model without it",
        ),
        (_with_other_order, "input 'past_key_values.0.value' is no past of a state: Concat .* does not append"),
        (_without_presents, "give its size, .*--dim past=N.*'past_key_values.0.key' is no past of a state: no output"),
    ],
)
def test_what_is_no_step_model_is_told(files, change, message):
    model = step_model(NET)
    change(model)
    onnx.save(model, files / "odd.onnx")
    with pytest.raises(caesura.UsageError, match=message):
        _refuse(files, "odd.onnx")


def test_other_dimensions_have_sizes_and_that_of_states_stays_open(files):
    model = step_model(StepNet(layers=1, operators=True))
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "length"
    onnx.save(model, files / "open.onnx")
    quantise(files / "open.onnx", files / "prompts.npz", files / "q.onnx", dim=["length=1"])
    made = onnx.load(files / "q.onnx")
    dims = [[dim.dim_param or dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in made.graph.input]
    assert dims == [[1, 1], [1, 1], *[[1, 2, "past", 8]] * 2]


def test_attention_that_stays_a_node_is_told(files):
    model = step_model(StepNet(layers=1, operators=True))
    (node,) = (node for node in model.graph.node if node.op_type == "Attention")
    node.output.append("scores")
    onnx.save(model, files / "odd.onnx")
    with pytest.raises(caesura.UsageError, match=r"past 'past_key_values\.0\.key' in no 8 bits: it gives its scores"):
        _refuse(files, "odd.onnx")


def test_tokens_beyond_the_table_are_told(files):
    np.savez(files / "bad.npz", input_ids=np.full((1, 3), NET.vocabulary))
    with pytest.raises(caesura.UsageError, match="out of data bounds"):
        _refuse(files, "float.onnx", "bad.npz")


def test_one_length_needs_pasts_as_other_inputs(files):
    """With a size for the dimension it is a model like others."""
    with pytest.raises(caesura.InputError, match="no array for input 'position_ids'"):
        _refuse(files, "float.onnx", sizes={"past": 4})
