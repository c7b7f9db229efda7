"""Perception and planning: two small convolutional networks whose accelerator times are about 3 to 1.

Their weights are seeded, not trained: what they compute is as real as their layers, what they conclude is not.
"""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from benchmarks.workloads.cache import cached
from benchmarks.workloads.images import image
from benchmarks.workloads.layers import Activation, Network
from benchmarks.workloads.registry import write_network
from hw.contract.params import SocParams

CLASSES = 8  #: of a cell of the map: road, car, and so on
CELLS = 16  #: the map is as wide and as high as that
TRAJECTORIES = 16  #: that planning chooses from
_VERSION = 1  #: raise it with every change to what is generated
_TINY_MACS = 32  #: per cycle, of the preset ``tiny``

Array = npt.NDArray[np.float32]


def perception(width: int) -> Network:
    """Camera image [3, 32, 32] to scores of ``CLASSES`` for each cell of the map. ``width``: channels."""
    net = Network("perception", (3, 2 * CELLS, 2 * CELLS), input="camera")
    x = net.conv("stem", "camera", width, 3, 2, 1)
    for i in range(2):
        first = net.conv(f"block{i}.conv1", x, width, 3, 1, 1)
        second = net.conv(f"block{i}.conv2", first, width, 3, 1, 1, activation=Activation.NONE, residual=True)
        x = net.add(f"block{i}", x, second, Activation.RELU)
    net.conv("scores", x, CLASSES, activation=Activation.NONE)
    return net


def planning(width: int, extra: int = 0) -> Network:
    """Return the map, one channel for each class, to a score for each trajectory. ``width``: channels; ``extra``: those
    of a fourth convolution, 0 for none."""
    net = Network("planning", (CLASSES, CELLS, CELLS), input="map")
    x = net.conv("near", "map", width, 3, 1, 1)
    x = net.conv("far", x, 2 * width, 3, 2, 1)
    x = net.conv("paths", x, width, 3, 1, 1)
    x = net.conv("costs", x, extra, 3, 1, 1) if extra else x
    net.gemm("trajectories", net.flatten("flat", net.global_average_pool("pool", x)), TRAJECTORIES)
    return net


def models(params: SocParams) -> tuple[Path, Path]:
    """ONNX files of both networks, int8 QDQ, generated on first use. Larger machines get wider ones that also run
    longer, as there is more to dump: the published example takes 1/30 of perception for it."""
    scale = math.isqrt(params.macs // _TINY_MACS)
    if scale <= 1:
        return _file(perception(24)), _file(planning(24))
    # The first convolution of planning counts for less the wider it is.
    return _file(perception(48 * scale)), _file(planning(48 * scale, 40 * scale))


def camera(frame: int) -> Array:
    """Return the camera's image of a frame, [1, 3, 32, 32]."""
    return image((3, 2 * CELLS, 2 * CELLS), (_VERSION, frame))


def parse(scores: npt.NDArray) -> Array:
    """Return what the CPU does between the two: scores [1, classes, y, x] to a map, 1.0 in the channel of the best
    class."""
    best = np.argmax(scores, axis=1, keepdims=True)
    return (best == np.arange(scores.shape[1]).reshape(1, -1, 1, 1)).astype(np.float32)


def _file(network: Network) -> Path:
    parameters = (_VERSION, network, onnx.__version__, onnxruntime.__version__)
    return cached(network.name, parameters, lambda path: write_network(network, path))
