"""Workloads by name: networks (branchy, exported ones too), encoders, decoders, products, single convolutions."""

import difflib
from collections.abc import Callable
from pathlib import Path

import numpy.typing as npt
import onnx
import onnxruntime

from benchmarks.workloads import (
    attention,
    branchy,
    cells,
    conv,
    decoders,
    encoders,
    gemm,
    networks,
    prompts,
    published,
    qdq,
    tables,
)
from benchmarks.workloads.cache import cached
from benchmarks.workloads.export import float_model
from benchmarks.workloads.exported import networks as exported
from benchmarks.workloads.images import image
from benchmarks.workloads.inception_v3 import inception_v3
from benchmarks.workloads.layers import Network
from benchmarks.workloads.quantise import quantise, quantise_as_users_do

VERSION = 2  #: of all generators; raise it when what one of them generates for the same parameters changes
SEED = 2024
CALIBRATION_IMAGES = 2
MAX_MACS = 1 << 36  #: of a layer or an encoder: more is a typing error, and may not fit an ONNX file

NETWORKS: dict[str, Callable[[], Network]] = {
    "resnet50": networks.resnet50,
    "squeezenet": networks.squeezenet,
    "squeezenet1_0": networks.squeezenet1_0,
    "mobilenetv2": networks.mobilenetv2,
}
#: Those that published loads of several tenants name, and narrow ones of small images.
LOAD_NETWORKS: dict[str, Callable[[], Network]] = {
    "resnet152": networks.resnet152,
    "vgg16": published.vgg16,
    "vgg19": published.vgg19,
    "alexnet": published.alexnet,
    "googlenet": published.googlenet,
    "mobilenetv1": published.mobilenetv1,
    "densenet201": published.densenet201,
    "inception_v3": inception_v3,
    "vgg19_small": lambda: published.vgg19(1 / 4, 112, classes=100),
    "resnet152_small": lambda: networks.resnet152(1 / 4, 112, classes=100),
    "densenet201_small": lambda: published.densenet201(1 / 4, 112, classes=100),
    "inception_v3_small": lambda: inception_v3(1 / 4, 149, classes=100),
    "alexnet_small": lambda: published.alexnet(1 / 4, 112, classes=100),
    "googlenet_small": lambda: published.googlenet(1 / 4, 112, classes=100),
    "vgg16_small": lambda: published.vgg16(1 / 4, 112, classes=100),
    "mobilenetv1_small": lambda: published.mobilenetv1(1 / 4, 112, classes=100),
    "mobilenetv2_small": lambda: networks.mobilenetv2(1 / 4, 112, classes=100),
    "resnet50_small": lambda: networks.resnet50(1 / 4, 112, classes=100),
    "squeezenet_small": lambda: networks.squeezenet(1 / 4, 112, classes=100),
}

Inputs = dict[str, npt.NDArray]
_Layer = (
    decoders.DecoderShape | attention.Attention | gemm.Gemm | conv.ConvShape
)  #: models that are made, not calibrated


class UnknownWorkload(ValueError):
    """No workload has this name."""


def names() -> list[str]:
    """Return the workloads of the benchmarks: networks, encoders, decoders, products, convolutions. Those of other
    sizes can be had as well, by names of the same form (:func:`encoders.parse`)."""
    cases = [*tables.first_layers(), *tables.resnet50_convolutions(), *tables.depthwise_convolutions()]
    return [
        *NETWORKS,
        *branchy.NETWORKS,
        *cells.NETWORKS,
        *LOAD_NETWORKS,
        *exported.NETWORKS,
        *encoders.ENCODERS,
        *decoders.DECODERS,
        *(product.name for product in tables.GEMMS),
        *(case.conv.name for case in cases),
    ]


def workload(name: str) -> Path:
    """Return the int8 QDQ ONNX model of a workload, generated on first use. Raises :class:`UnknownWorkload`."""
    subject = _find(name)
    parameters = (VERSION, SEED, subject, onnx.__version__, onnxruntime.__version__)
    if isinstance(subject, Network):
        return cached(name, (*parameters, CALIBRATION_IMAGES), lambda path: write_network(subject, path))
    if isinstance(subject, encoders.Encoder):
        return cached(name, (*parameters, CALIBRATION_IMAGES), lambda path: write_encoder(subject, path))
    if isinstance(subject, exported.Exported):
        return cached(name, (*parameters, CALIBRATION_IMAGES), lambda path: write_exported(subject, path))
    if isinstance(subject, prompts.Prompt):
        return cached(name, (*parameters, CALIBRATION_IMAGES), lambda path: write_prompt(subject, path))
    return cached(name, parameters, lambda path: onnx.save(_layer_model(subject), path))


def inputs(name: str, index: int = 0) -> Inputs:
    """Return the inputs of a workload by tensor name, always the same for one ``index``; none of them calibrated the
    model. Raises :class:`UnknownWorkload`."""
    subject = _find(name)
    if isinstance(subject, Network):
        return {subject.input: image(subject.in_shape, (SEED, 1, index))}
    if isinstance(subject, encoders.Encoder):
        return {**encoders.inputs(subject, (SEED, 1, index))}
    if isinstance(subject, exported.Exported):
        return {**subject.inputs((SEED, 1, index))}
    if isinstance(subject, attention.Attention):
        return {**attention.inputs(subject, (SEED, 1, index))}
    if isinstance(subject, decoders.DecoderShape):
        return {**decoders.inputs(subject, (SEED, 1, index))}
    if isinstance(subject, prompts.Prompt):
        return {**prompts.inputs(subject, (SEED, 1, index))}
    return {qdq.INPUT: qdq.activations(subject.in_shape, (SEED, 1, index))}


def write_network(network: Network, path: Path) -> None:
    """Generate the weights of a network, quantise it, and write it to ``path``."""
    feeds = [{network.input: image(network.in_shape, (SEED, 0, index))} for index in range(CALIBRATION_IMAGES)]
    quantise(float_model(network, SEED), feeds, path)


def write_encoder(encoder: encoders.Encoder, path: Path) -> None:
    """Generate the weights of an encoder, quantise it, and write it to ``path``."""
    feeds = [encoders.inputs(encoder, (SEED, 0, index)) for index in range(CALIBRATION_IMAGES)]
    quantise(encoders.float_model(encoder, SEED), feeds, path)


def write_exported(network: exported.Exported, path: Path) -> None:
    """Generate the weights of an exported network, quantise it as users do, and write it to ``path``."""
    feeds = [network.inputs((SEED, 0, index)) for index in range(CALIBRATION_IMAGES)]
    quantise_as_users_do(network.float_model(SEED), feeds, path)


def write_prompt(prompt: prompts.Prompt, path: Path) -> None:
    """Generate the weights of layers, quantise them as users do, and write them to ``path``."""
    feeds = [prompts.inputs(prompt, (SEED, 0, index)) for index in range(CALIBRATION_IMAGES)]
    quantise_as_users_do(prompts.float_model(prompt, SEED), feeds, path)


def _find(name: str) -> Network | exported.Exported | encoders.Encoder | prompts.Prompt | _Layer:
    if name in NETWORKS:
        return NETWORKS[name]()
    if name in branchy.NETWORKS:
        return branchy.NETWORKS[name]()
    if name in cells.NETWORKS:
        return cells.NETWORKS[name]()
    if name in LOAD_NETWORKS:
        return LOAD_NETWORKS[name]()
    if name in exported.NETWORKS:
        return exported.NETWORKS[name]
    layer = (
        encoders.parse(name)
        or prompts.parse(name)
        or decoders.parse(name)
        or attention.parse(name)
        or gemm.parse(name)
        or conv.parse(name)
    )
    if layer is None:
        raise UnknownWorkload(_unknown(name))
    problem = layer.problem()
    if problem is None and layer.macs > MAX_MACS:
        problem = f"{layer.macs} multiply-accumulates, the limit is {MAX_MACS}"
    if problem:
        raise UnknownWorkload(f"workload {name!r}: {problem}")
    return layer


def _layer_model(layer: _Layer) -> onnx.ModelProto:
    if isinstance(layer, attention.Attention):
        return attention.model(layer)
    if isinstance(layer, decoders.DecoderShape):
        return decoders.model(layer, SEED)
    return gemm.model(layer, SEED) if isinstance(layer, gemm.Gemm) else conv.model(layer, SEED)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(near)}"
        if near
        else f"networks are {', '.join([*NETWORKS, *branchy.NETWORKS, *LOAD_NETWORKS, *exported.NETWORKS])}"
    )
    return (
        f"no workload {name!r}; {hint}; "
        "layers are gemm_MxKxN and conv_CINxHxW_COUT_kKERNEL_sSTRIDE_pPAD[_gGROUPS], "
        "attention_HEADSxWIDTH_LENGTH, encoders bert_base[_LAYERSxLENGTH][_masked][_erf], decoders' products "
        "linear_stories15m[_LAYERS[_head]][_int4] and the like, "
        "and python -m benchmarks.workloads lists all that are measured"
    )
