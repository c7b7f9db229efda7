"""Exported networks: sizes that their authors publish, the operators of exporters, and results of small ones."""

from collections import Counter
from dataclasses import replace

import numpy as np
import onnx
import pytest

import caesura
from benchmarks.lab import compare_by_operator
from benchmarks.workloads import inputs, names
from benchmarks.workloads.exported import dense_prediction, mobile, swin
from benchmarks.workloads.exported.graph import ExportedGraph
from benchmarks.workloads.exported.networks import NETWORKS, Exported
from benchmarks.workloads.registry import write_exported
from compiler import import_model

# Multiply-accumulates in thousand millions and parameters as torchvision's tables, or the authors, have them.
SIZES = {
    "mobilenet_v3_large": (0.217, 5_483_032),
    "mobilenet_v3_small": (0.057, 2_542_856),
    "efficientnet_b0": (0.386, 5_288_548),
    "efficientnet_v2_s": (2.850, 21_458_488),
    "mnasnet1_0": (0.314, 4_383_312),
    "regnet_y_400mf": (0.402, 4_344_144),
    "regnet_x_400mf": (0.414, 5_495_976),
    "shufflenet_v2_x1_0": (0.145, 2_278_604),
    "densenet121": (2.834, 7_978_856),
    "resnet18": (1.814, 11_689_512),
    "resnext50_32x4d": (4.230, 25_028_904),
    "wide_resnet50_2": (11.398, 68_883_240),
    "ssdlite320": (0.583, 3_440_060),
    "convnext_tiny": (4.456, 28_589_128),
    "swin_t": (4.491, 28_288_354),
    "vit_b_16": (17.564, 86_567_656),
    "yolov8n": (1.093, 3_157_200 - 16),  # without the products that make numbers of bins
    "unet_transposed": (12.071, 7_763_041),
    "mobilevit_s": (2.001, 5_578_632),
}
LONG = ("wide_resnet50_2", "vit_b_16", "resnext50_32x4d", "convnext_tiny", "swin_t")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in SIZES]
)
def test_sizes_are_the_published_ones(name):
    gmacs, parameters = SIZES[name]
    graph, _ = NETWORKS[name].graph(1)
    assert (round(graph.macs / 1e9, 3), graph.parameters) == (pytest.approx(gmacs, abs=5.1e-4), parameters)


@pytest.mark.parametrize(
    ("build", "gmacs", "parameters"),
    [
        (dense_prediction.lraspp, 2.086, 3_221_538),
        (dense_prediction.deeplab_v3, 10.452 - 0.016, 11_029_328 - 3_851),  # without the second classifier
    ],
)
def test_segmentation_has_the_published_sizes_at_the_published_resolution(build, gmacs, parameters):
    graph = ExportedGraph("segmentation", (1, 3, 520, 520), 1)
    build(graph)
    assert (graph.macs / 1e9, graph.parameters) == (pytest.approx(gmacs, rel=2e-3), parameters)


def test_all_are_workloads():
    assert set(NETWORKS) <= set(names()) and all(name == network.name for name, network in NETWORKS.items())
    assert inputs("whisper_tiny_encoder")["input"].shape == (1, 80, 3000)
    assert inputs("pointnet")["input"].std() == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("mobilenet_v3_small", {"HardSwish": 19, "HardSigmoid": 9, "GlobalAveragePool": 10, "Gemm": 2, "Conv": 52}),
        ("shufflenet_v2_x1_0", {"Split": 13, "Concat": 16, "Reshape": 32, "Transpose": 16, "ReduceMean": 1}),
        (
            "densenet121",
            {"BatchNormalization": 62, "Concat": 62, "AveragePool": 3, "Conv": 120, "GlobalAveragePool": 1},
        ),
        ("tcn_24", {"Pad": 12, "Conv": 13, "Relu": 18, "Add": 6, "Gather": 1, "Gemm": 1}),
        ("pointnet", {"ReduceMax": 2, "BatchNormalization": 4, "Gemm": 6, "Conv": 6, "MatMul": 1, "Transpose": 2}),
        ("espcn", {"Conv": 4, "Relu": 3, "DepthToSpace": 1}),
        ("yolov8n", {"Split": 8, "Resize": 2, "MaxPool": 3, "Sigmoid": 57, "Mul": 57}),
    ],
)
def test_operators_are_those_of_the_exporter(name, operators):
    model = NETWORKS[name].float_model(1)
    counts = Counter(node.op_type for node in model.graph.node)
    assert {kind: counts[kind] for kind in operators} == operators
    assert [entry.version for entry in model.opset_import] == [17]


def test_shapes_are_what_onnx_infers():
    graph = ExportedGraph("wrong", (1, 4, 8, 8), 1)
    x = graph.conv("input", 8, 3)
    graph.shapes[x] = (1, 8, 9, 9)
    with pytest.raises((ValueError, onnx.shape_inference.InferenceError)):
        graph.model(graph.relu(x))


EXCITED = mobile.Mobile3(3, 16, 16, True, "hardswish", 1)


def attention_in_windows(graph: ExportedGraph) -> tuple[str, ...]:
    """What a Swin block has and others have not: windows, a roll, one product for queries, keys and values."""
    x = graph.transpose(graph.conv("input", 32, 4, 4, pad=0, norm=False), 0, 2, 3, 1)
    return (swin.windowed(graph, graph.layer_norm(x), swin.SHIFT),)


@pytest.mark.parametrize(
    "network",
    [
        replace(NETWORKS["tcn_24"], in_shape=(1, 24, 32)),
        Exported(
            "inverted", lambda graph: (mobile.inverted_residual(graph, "input", 3, 5, 1, 8, "silu"),), (1, 8, 9, 9)
        ),
        Exported("excited", lambda graph: (mobile.mobile3_rest(graph, "input", "input", EXCITED),), (1, 16, 8, 8)),
        pytest.param(replace(NETWORKS["espcn"], in_shape=(1, 1, 12, 10)), marks=pytest.mark.slow),
        pytest.param(Exported("windows", attention_in_windows, (1, 3, 56, 56)), marks=pytest.mark.slow),
    ],
    ids=lambda network: network.name,
)
def test_results_of_small_ones_are_right(network, tmp_path):
    path = tmp_path / "network.onnx"
    write_exported(network, path)
    feed = network.inputs((1,))
    with caesura.open("tiny", "model") as device:
        outputs, _ = device.load(caesura.compile(path, "tiny")).run(feed)
    right, verdict = compare_by_operator(import_model(path), feed, outputs)
    assert right, verdict
    assert all(np.isfinite(value).all() and value.std() > 0 for value in outputs.values())
