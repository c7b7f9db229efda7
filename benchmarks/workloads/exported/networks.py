"""All exported networks by name: what builds each, and the shape of its input."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import onnx

from benchmarks.workloads.exported import (
    dense_prediction,
    detection,
    joined,
    mobile,
    regnet,
    resnet,
    signals,
    swin,
    transformers,
)
from benchmarks.workloads.exported.graph import ExportedGraph
from benchmarks.workloads.exported.operators import INPUT
from benchmarks.workloads.images import image
from benchmarks.workloads.layers import Shape

IMAGE: Shape = (1, 3, 224, 224)


@dataclass(frozen=True)
class Exported:
    """A network as it is exported. ``build`` adds its operators to a graph and returns the names of its outputs."""

    name: str
    build: Callable[[ExportedGraph], tuple[str, ...]] = field(repr=False)  #: a repr tells generated files apart
    in_shape: Shape = IMAGE
    version: int = 1  #: raise it when the graph of these parameters changes

    def graph(self, seed: int) -> tuple[ExportedGraph, tuple[str, ...]]:
        """Return the operators, with weights from ``seed``, and the names of the outputs."""
        graph = ExportedGraph(self.name, self.in_shape, seed)
        return graph, self.build(graph)

    def float_model(self, seed: int) -> onnx.ModelProto:
        """Return the float model with batch 1."""
        graph, outputs = self.graph(seed)
        return graph.model(*outputs)

    def inputs(self, seed: tuple[int, ...]) -> dict[str, npt.NDArray[np.float32]]:
        """Return an input whose neighbours resemble each other: an image, or channels of a signal."""
        *_, channels, height, width = (1, *self.in_shape) if len(self.in_shape) == 3 else self.in_shape
        return {INPUT: image((channels, height, width), seed).reshape(self.in_shape)}


NETWORKS: dict[str, Exported] = {
    network.name: network
    for network in (
        Exported("mobilenet_v3_large", partial(mobile.mobilenet_v3, blocks=mobile.LARGE, hidden=1280)),
        Exported("mobilenet_v3_small", partial(mobile.mobilenet_v3, blocks=mobile.SMALL, hidden=1024)),
        Exported("efficientnet_b0", mobile.efficientnet_b0),
        Exported("efficientnet_v2_s", mobile.efficientnet_v2_s),
        Exported("mnasnet1_0", mobile.mnasnet1_0),
        Exported("regnet_y_400mf", regnet.regnet_y_400mf),
        Exported("regnet_x_400mf", regnet.regnet_x_400mf),
        Exported("shufflenet_v2_x1_0", joined.shufflenet_v2),
        Exported("densenet121", joined.densenet121),
        Exported("resnet18", resnet.resnet18),
        Exported("wide_resnet50_2", partial(resnet.resnet50_kin, width=128)),
        Exported("resnext50_32x4d", partial(resnet.resnet50_kin, width=4, groups=32)),
        Exported("ssdlite320", detection.ssdlite320, (1, 3, 320, 320)),
        Exported("yolov8n", detection.yolov8n, (1, 3, 320, 320)),
        Exported("lraspp", dense_prediction.lraspp),
        Exported("deeplab_v3", dense_prediction.deeplab_v3),
        Exported("unet_transposed", partial(dense_prediction.unet, upsampling="transposed"), (1, 3, 256, 256)),
        Exported("unet_nearest", partial(dense_prediction.unet, upsampling="nearest"), (1, 3, 256, 256)),
        Exported("espcn", dense_prediction.espcn, (1, 1, 224, 224)),
        Exported("convnext_tiny", transformers.convnext_tiny),
        Exported("swin_t", swin.swin_t),
        Exported("vit_b_16", transformers.vit_b_16),
        Exported("mobilevit_s", transformers.mobilevit_s, (1, 3, 256, 256)),
        Exported("whisper_tiny_encoder", signals.whisper_tiny_encoder, (1, 80, 3000)),
        Exported("tcn_24", partial(signals.tcn, channels=24), (1, 24, 256)),
        Exported("tcn_64", partial(signals.tcn, channels=64), (1, 64, 256)),
        Exported("pointnet", signals.pointnet, (1, 3, 1024)),
    )
}
