"""Layer normalisation written out, quantised by onnxruntime's own tool: as one, or node by node."""

import onnx
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from compiler import quantise
from compiler.frontend import import_model
from compiler.frontend.problems import UnsupportedModel
from tests.support.golden_check import check_model, kinds
from tests.support.onnx_models import Net
from tests.support.written_norms import Form, written

WIDTH = 24


class _Samples(CalibrationDataReader):
    def __init__(self, net: Net):
        self._feeds = iter([{"x": net.rng.normal(0, 1, (1, 10, WIDTH)).astype("float32")} for _ in range(4)])

    def get_next(self):
        return next(self._feeds, None)


def _float_model(opset: int) -> tuple[Net, onnx.ModelProto, list[str]]:
    """A product, a residual sum, a layer normalisation and a product; the names of its nodes."""
    net = Net(opset)
    x = net.input((1, 10, WIDTH), "float32")

    def product(value: str) -> str:
        return net.node("MatMul", [value, net.const(net.rng.normal(0, 0.3, (WIDTH, WIDTH)), "float32")])

    total = net.node("Add", [product(x), x])
    first = len(net.nodes)
    gamma, beta = net.rng.normal(1, 0.2, WIDTH), net.rng.normal(0, 0.2, WIDTH)
    y = written(net, total, Form(opset), 1e-5, gamma, beta)["y"]
    inside = [node.name for node in net.nodes[first:] if node.op_type != "Constant"]
    return net, net.model(product(y), dtype="float32"), inside


def _quantised(net: Net, model: onnx.ModelProto, path, form: QuantFormat, exclude: list[str]) -> onnx.ModelProto:
    quantize_static(
        model, path, _Samples(net), quant_format=form, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
        nodes_to_exclude=exclude,
    )  # fmt: skip
    return onnx.load(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", QuantFormat)
@pytest.mark.parametrize("opset", [13, 16, 18])
def test_left_out_of_quantisation_it_is_one(opset, form, tmp_path):
    net, model, inside = _float_model(opset)
    found = kinds(check_model(_quantised(net, model, tmp_path / "q.onnx", form, inside)))
    assert [kind for kind in found if kind != "reshape"] == ["conv", "eltwise", "layernorm", "conv"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("opset", [17, 18])
def test_prepared_it_is_a_single_node(opset, tmp_path):
    net, model, _ = _float_model(opset)
    prepared = quantise.prepared(model)
    assert "LayerNormalization" in {node.op_type for node in prepared.graph.node}
    assert "layernorm" in kinds(check_model(_quantised(net, prepared, tmp_path / "q.onnx", QuantFormat.QDQ, [])))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", QuantFormat)
@pytest.mark.parametrize("opset", [13, 16])
def test_quantised_node_by_node_it_is_in_part_on_the_cpu(opset, form, tmp_path):
    net, model, _ = _float_model(opset)
    stored = _quantised(net, quantise.prepared(model), tmp_path / "q.onnx", form, [])
    with pytest.raises(UnsupportedModel, match=r"QuantizeLinear .* reads its variance; export with opset 17") as error:
        import_model(stored)
    refused = {"ReduceMean", "Sub", "Pow", "Div"}
    assert {node.type for node in error.value.nodes} == refused
    graph = check_model(stored, fallback=True)
    types = {node.name: node.op_type for node in stored.graph.node}
    on_cpu = {types.get(name, "") for op in graph.ops if op.kind == "host" for name in op.nodes}
    assert refused < on_cpu and not {"Mul", "QLinearMul", "Add", "QLinearAdd"} & on_cpu
    assert kinds(graph).count("host") == 3
