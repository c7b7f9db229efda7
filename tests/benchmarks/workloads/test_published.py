"""Networks of published loads: their sizes, and results of small ones, which must be right."""

import math

import onnx
import pytest

import caesura
from benchmarks.workloads import conv, encoders, networks, published, registry
from benchmarks.workloads.images import image
from benchmarks.workloads.inception_v3 import inception_v3
from benchmarks.workloads.layers import Kind, Network
from benchmarks.workloads.registry import write_network
from caesura.checks import check
from compiler.compile import compile_with_report
from compiler.frontend import import_model
from compiler.ir import Host


@pytest.mark.parametrize(
    ("topology", "gmacs", "parameters"),
    [
        (published.vgg16, 15.47, 138.36e6),
        (published.vgg19, 19.63, 143.67e6),
        (published.alexnet, 0.714, 61.10e6),
        (published.googlenet, 1.58, 7.0e6),
        (published.mobilenetv1, 0.569, 4.22e6),
        (published.densenet201, 4.29, 19.80e6),
        (networks.resnet152, 11.51, 60.12e6),
        (inception_v3, 5.71, 23.82e6),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_sizes_are_the_published_ones(topology, gmacs, parameters):
    """Parameters without normalisation's: DenseNet-201 has 20.01 M with them."""
    network = topology()
    weights = [math.prod(layer.weight_shape) + layer.out_shape[0] for layer in network.layers if layer.weight_shape]
    assert network.macs / 1e9 == pytest.approx(gmacs, rel=0.01)
    assert sum(weights) == pytest.approx(parameters, rel=0.002)
    assert network.layers[-1].out_shape == (1000,)
    assert network.name in registry.names()


def test_inception_v3_meets_its_published_shapes():
    network = inception_v3()
    assert network.shape("square3.concat") == (288, 35, 35)
    assert network.shape("flat4.concat") == (768, 17, 17)
    assert network.shape("split2.concat") == (2048, 8, 8)
    assert {layer.window for layer in network.layers if layer.kind is Kind.CONV} >= {(1, 7), (7, 1), (1, 3), (3, 1)}


def test_distilbert_is_half_of_bert():
    assert encoders.parse("distilbert").layers == 6
    assert encoders.parse("distilbert_6x128").macs * 2 == encoders.parse("bert_base").macs


def test_flat_kernel_is_no_single_convolution():
    network = Network("flat", (4, 8, 8))
    network.conv("x", network.input, 4, (1, 3), pad=(0, 1))
    assert network.shape("x") == (4, 8, 8)
    with pytest.raises(ValueError, match="x has a 1x3 kernel, which is not square"):
        conv.of_layer(network.layers[0])


def test_average_counts_padding(tmp_path):
    """As the published networks do, and not as the default of ONNX."""
    network = Network("mean", (4, 6, 6))
    network.average_pool("x", network.conv("c", network.input, 4), 3, 1, pad=1)
    write_network(network, tmp_path / "mean.onnx")
    (node,) = [node for node in onnx.load(tmp_path / "mean.onnx").graph.node if node.op_type == "AveragePool"]
    assert {one.name: one.i for one in node.attribute}["count_include_pad"] == 1


def flat_kernels():
    """What Inception v3 has and the others have not."""
    network = Network("flat_kernels", (4, 9, 9))
    wide = network.conv("wide", network.input, 8, (1, 7), pad=(0, 3))
    high = network.conv("high", wide, 8, (7, 1), pad=(3, 0))
    network.average_pool("mean", network.concat("both", wide, high), 3, 1, pad=1)
    return network


@pytest.mark.parametrize(
    "network",
    [
        flat_kernels(),
        published.alexnet(1 / 32, 64, classes=10),
        published.vgg19(1 / 32, 32, classes=10),
        *(
            pytest.param(network, marks=pytest.mark.slow)
            for network in (
                inception_v3(1 / 16, 75, classes=10),
                published.googlenet(1 / 16, 32, classes=10),
                published.densenet201(1 / 8, 32, classes=10),
            )
        ),
    ],
    ids=lambda network: network.name,
)
def test_results_of_small_ones_are_right(network, tmp_path):
    """All are exact but DenseNet's, where averages may be off by one: each of its layers is within its contract."""
    path = tmp_path / "network.onnx"
    write_network(network, path)
    assert not [op.reason for op in import_model(path).ops if isinstance(op, Host)]
    feed = {network.input: image(network.in_shape, 1)}
    with caesura.open("base", "model") as device:
        outputs, _ = device.load(caesura.compile(path, "base")).run(feed)
        observing = compile_with_report(path, device.params, observe=True, engines=1)
        result = check(device, path, observing.image, observing.graph, [feed], [outputs])
    assert result.ok, result.summary()
    assert network.name.startswith("densenet201") or not result.output_difference, result.summary()
