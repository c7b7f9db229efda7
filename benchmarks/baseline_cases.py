"""What the baseline measures: one case for each topology, preset and kind of layer."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx

from benchmarks.workloads import inputs, qdq, registry, workload
from benchmarks.workloads.cache import cached
from benchmarks.workloads.images import image
from benchmarks.workloads.layers import Network
from benchmarks.workloads.networks import mobilenetv2, resnet50, squeezenet
from benchmarks.workloads.registry import NETWORKS, Inputs, write_network
from examples.digits import MODEL, SAMPLES

Files = tuple[Path, Inputs | Path]  #: a model, and its inputs or the .npz file whose first sample they are


class MissingModel(Exception):
    """The case's model is not part of the repository and was not found; says where it was looked for."""


@dataclass(frozen=True)
class BaselineCase:
    """One model on one preset. ``slow``: minutes; ``calibrated``: onnxruntime chose the scales of the model."""

    preset: str
    model: str
    slow: bool = False

    @property
    def name(self) -> str:
        """Of the case, unique."""
        return f"{self.preset} {self.model}"

    @property
    def calibrated(self) -> bool:
        """See the class."""
        return self.model in NETWORKS or self.model in _SMALL

    def files(self) -> Files:
        """Return the model's file, generated on first use, and its inputs. Raises :class:`MissingModel`."""
        if self.model in _SMALL:
            return _small(self.model)
        return _FILES[self.model]() if self.model in _FILES else (workload(self.model), inputs(self.model))


def _small(name: str) -> Files:
    """Return a network of few channels on a small image: all of its kinds of layers in little time."""
    network: Network = _SMALL[name](width=1 / 8, size=32, classes=10)
    parameters = (registry.VERSION, registry.SEED, network, onnx.__version__, registry.onnxruntime.__version__)
    path = cached(name, parameters, lambda path: write_network(network, path))
    return path, {network.input: image(network.in_shape, (registry.SEED, 1, 0))}


def _one_dimensional() -> Files:
    """Return a Conv of [1, 16, 96] with kernel 5 to 24 channels: the registry's have two dimensions."""
    operator = qdq.QdqOperator(
        "conv1d", "Conv", (1, 16, 96), (1, 24, 48), (24, 16, 5), channel_axis=0, has_bias=True,
        attributes={"kernel_shape": [5], "strides": [2], "pads": [2, 2]},
    )  # fmt: skip
    parameters = (registry.VERSION, registry.SEED, operator, onnx.__version__)
    path = cached("conv1d", parameters, lambda path: onnx.save(qdq.model(operator, registry.SEED), path))
    return path, {qdq.INPUT: qdq.activations(operator.in_shape, (registry.SEED, 1, 0))}


def _recorded(path: Path, samples: Path) -> Files:
    for file in (path, samples):
        if not file.exists():
            raise MissingModel(f"no {file}: set CAESURA_MODELS to the folder of the models")
    return path, samples


def _outside(name: str) -> Callable[[], Files]:
    """Return a model that is not part of the repository."""

    def files() -> Files:
        folder = Path(os.environ.get("CAESURA_MODELS", "models"))
        return _recorded(folder / f"{name}.onnx", folder / f"{name}_samples.npz")

    return files


_SMALL: dict[str, Callable[..., Network]] = {
    "resnet50_small": resnet50,
    "mobilenetv2_small": mobilenetv2,
    "squeezenet_small": squeezenet,
}
_FILES: dict[str, Callable[[], Files]] = {
    "digits": lambda: _recorded(MODEL, SAMPLES),
    "conv1d": _one_dimensional,
    "ic_resnet8_int8": _outside("ic_resnet8_int8"),
    "kws_dscnn_int8": _outside("kws_dscnn_int8"),
}

CASES = (
    *(
        BaselineCase("tiny", model)
        for model in (
            "digits",
            "gemm_32x64x48",
            "conv1d",
            "conv_8x16x16_16_k3_s1_p1",
            "conv_32x14x14_64_k1_s1_p0",
            "conv_16x20x20_24_k5_s2_p2",
            "conv_3x32x32_16_k7_s2_p3",
            "conv_16x24x24_16_k3_s1_p1_g16",
            "conv_16x24x24_16_k3_s2_p1_g16",
            *_SMALL,
        )
    ),
    BaselineCase("ecp5", "digits", slow=True),
    *(
        BaselineCase("base", model)
        for model in ("digits", "gemm_256x256x256", "conv_64x14x14_64_k3_s1_p1", "conv_64x28x28_64_k3_s2_p1_g64")
    ),
    BaselineCase("base", "mobilenetv2_small"),
    *(
        BaselineCase(preset, model, slow=True)
        for preset in ("tiny", "base")
        for model in ("ic_resnet8_int8", "kws_dscnn_int8")
    ),
    *(BaselineCase("base", model, slow=True) for model in ("squeezenet", "mobilenetv2", "resnet50")),
)
