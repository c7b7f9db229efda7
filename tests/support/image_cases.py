"""Models of all kinds and ways to compile them: the cases whose images ``tests/compiler/image_digests.json`` pins.

What ``benchmarks/baseline.json`` pins is not pinned here again: its networks are compiled otherwise.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
import onnx

from compiler import ir
from compiler.dynamic_dimension import DynamicDimension
from compiler.emission.objects.desk import Desk
from compiler.frontend import import_model
from compiler.pipeline import blank, build, emit_lowered, lowered, planned
from compiler.plan.options import ALL_LV2, Options
from compiler.search.engine_count import build_for_its_size
from compiler.search.programs import build_measured, build_timed
from compiler.search.ranges import compile_range
from compiler.search.retarget import retarget
from examples.encoder import MODEL as ENCODER
from hw.contract.params import KIB, SocParams
from hw.image.image import Image
from hw.image.kernel_attributes import KernelAttributes
from tests.support.graphs import GraphBuilder
from tests.support.layer_cases import BASE, CASES, FOUR, TINY
from tests.support.length_nets import H, X, conv_net, length_net
from tests.support.networks import network
from tests.support.onnx_models import Net
from tests.support.placed import branchy
from tests.support.random_graphs import random_graph
from tests.support.split_graphs import wide_middle


@dataclass(frozen=True)
class ImageCase:
    """A case. ``files`` makes the bytes of its image, or of all images that a search hands to whoever measures, in
    order, and then of the best. ``slow``: that takes more than two seconds."""

    name: str
    files: Callable[[], Iterable[bytes]]
    slow: bool = False


Build = tuple[ir.Graph, SocParams, Options]  #: what a build makes an image of


def _built(make: Callable[[], Build]) -> list[bytes]:
    return [build(*make(), jobs=1)[0].to_bytes()]


def _network(name: str, params: SocParams, options: Options) -> Build:
    return import_model(network(name), name=name), params, options


def _made(make: Callable[[int], ir.Graph], params: SocParams, options: Options) -> Build:
    return make(1), params, options


def _imported(model: onnx.ModelProto, params: SocParams, options: Options, **how) -> Build:
    return import_model(model, name="net", **how), params, options


# -- searches ------------------------------------------------------------------------------------------------
def _cycles_of_layers(image: Image) -> list[float]:
    """Cycles that depend on the names of layers alone."""
    return [1000.0 + crc32(layer.name.encode()) % 1000 for layer in image.meta.layers]


def _timed(graph: ir.Graph, params: SocParams, options: Options) -> list[bytes]:
    made: list[bytes] = []

    def time_layers(image: Image) -> list[float]:
        made.append(image.to_bytes())
        return _cycles_of_layers(image)

    best = build_timed(graph, params, options, Desk(1), time_layers)
    return [*made, best.image.to_bytes()]


def _measured(graph: ir.Graph, params: SocParams, options: Options) -> list[bytes]:
    """The search ends when it finds no other order: ``graph`` has few."""
    made: list[bytes] = []

    def measure(image: Image) -> float:
        made.append(image.to_bytes())
        return sum(_cycles_of_layers(image))

    best = build_measured(graph, params, options, Desk(1), measure, float("inf"))
    return [*made, best.image.to_bytes()]


def _auto(size: int, channels: int) -> list[bytes]:
    make = GraphBuilder(3)
    make.output(make.conv(make.input((1, size, size, channels)), channels, pads=(1, 1, 1, 1)))
    return [build_for_its_size(make.graph, FOUR, Options(), Desk(1))[0].to_bytes()]


# -- lengths -------------------------------------------------------------------------------------------------
def _range(model: onnx.ModelProto | Path, lengths: range, params: SocParams, **how) -> list[bytes]:
    attributes = KernelAttributes.of({"model": "net"}, "length", f"{min(lengths)}..{max(lengths)}")
    return [
        compile_range(
            DynamicDimension.of(model), params, lengths, attributes, Options(lv2_limit=ALL_LV2, **how)
        ).to_bytes()
    ]


def _family(lengths: Iterable[int]) -> Iterator[bytes]:
    """The longest length, then shorter ones by its plan: each with tiles of its own, and with the plan's."""
    dimension, longest = DynamicDimension.of(conv_net((1, 1), (1, 1))), None
    with Desk(1) as desk:
        for length in lengths:
            graph = import_model(dimension.fixed(length), name="net")
            free = blank(graph, TINY, Options())
            net = lowered(graph, free)
            if longest is None:
                longest = planned(free, net, desk)
                yield emit_lowered(longest.plan.without_orders(), net, desk).to_bytes()
            else:
                for free_tiles in (True, False):
                    plan = retarget(longest, free, net, free_tiles=free_tiles)
                    yield emit_lowered(plan, net, desk, longest.placement.constants).to_bytes()


def _rows_as_long() -> onnx.ModelProto:
    def rows(net: Net, x: str) -> str:
        y = net.dq(net.q(net.node("Softmax", [x], axis=-1), 1 / 255, -128), 1 / 255, -128)
        return net.node("Add", [y, y])

    return length_net(rows)


# -- models --------------------------------------------------------------------------------------------------
def _rows(seed: int) -> ir.Graph:
    """Attention, normalised."""
    make = GraphBuilder(seed)
    make.output(make.layer_norm(make.attention(24, 2, 16, mask=True)))
    return make.graph


def _depthwise(seed: int) -> ir.Graph:
    """Depthwise convolutions on chip, whose first and last tiles are cut, then a pool and a mean."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, 16, 16, 3)), 16, (3, 3), (2, 2), (1, 1, 1, 1))
    for _ in range(2):
        x = make.conv(make.conv(x, 32, (1, 1)), 32, pads=(1, 1, 1, 1), groups=32)
    x = make.pool("max", x, (2, 2), (2, 2))
    make.output(make.pool("avg", make.conv(x, 24, groups=8), (2, 2), (1, 1)))
    return make.graph


def _moves(seed: int) -> ir.Graph:
    """Bytes that move: padded, joined, turned, with a table and a product of parts."""
    make = GraphBuilder(seed)
    x = make.input((1, 7, 9, 6))
    y = make.concat([make.conv(make.pad(x, (1, 2, 1, 0)), 10), make.conv(x, 5)], 3)
    y = make.permute(make.table(y), (0, 2, 1, 3))
    make.output(make.eltwise("mul", y, make.input(make.shape(y))))
    make.output(make.permute(make.reshape(y, (1, make.shape(y)[1], -1 * -5 * 3, 5)), (0, 3, 1, 2)))
    return make.graph


def _large_weights(seed: int) -> ir.Graph:
    """Weights of one tile that are larger than a window, so that they come chunk by chunk."""
    make = GraphBuilder(seed)
    make.output(make.conv(make.conv(make.input((1, 5, 5, 16)), 256, (1, 1)), 24, (9, 9), pads=(4, 4, 4, 4)))
    return make.graph


def _with_cpu_steps() -> onnx.ModelProto:
    """A sum along an axis, which runs on the CPU, between two convolutions."""

    def steps(net: Net, x: str) -> str:
        y = net.dq(net.q(net.conv(x, X[0], (8, 4, 3), pads=[1, 1]), *H), *H)
        y = net.dq(net.q(net.node("CumSum", [y, net.const(2, np.int64)]), *H), *H)
        return net.conv(y, H[0], (8, 8, 3), pads=[1, 1])

    return length_net(steps, (1, 4, 12))


def _batched() -> onnx.ModelProto:
    net = Net()
    y = net.conv(net.dq(net.input((1, 3, 12, 12)), *X), X[0], (8, 3, 3, 3))
    y = net.dq(net.q(net.node("GlobalAveragePool", [net.dq(net.q(y, *H), *H)]), *H), *H)
    model = net.model(net.q(net.node("MatMul", [net.node("Flatten", [y]), net.weights((8, 10), 1)[0]]), *H))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    return model


BUILDS: dict[str, Callable[[], Build]] = {
    **{f"layers {number}": lambda case=case: case for number, case in enumerate(CASES)},
    **{
        f"{name} {how}": partial(_network, name, BASE, options)
        for name in ("digits", "ic_resnet8_int8", "kws_dscnn_int8")
        for how, options in {
            "on one engine": Options(),
            "placed": Options(engines=2, placed=True),
            "observed": Options(engines=2, observe=True),
            "without points": Options(engines=2, cancel_interval=0, order="source"),
        }.items()
        if (name, how) != ("digits", "without points")
    },
    **{
        f"{make.__name__[1:].replace('_', ' ')} {params.name} {engines}": partial(_made, make, params, options)
        for make in (_rows, _depthwise, _moves, _large_weights)
        for params, engines, options in (
            (TINY, 1, Options()),
            (BASE, 2, Options(engines=2, lv2_limit=320 * KIB, cancel_interval=3000)),
        )
    },
    **{
        f"random {seed}": partial(_imported, random_graph(seed), TINY, Options(observe=seed % 3 == 0))
        for seed in range(8)
    },
    "CPU steps": partial(_imported, _with_cpu_steps(), TINY, Options(), fallback=True),
    "batch 2": partial(_imported, _batched(), BASE, Options(engines=2), batch=2),
    "split": partial(_made, lambda _: wide_middle(64).graph, BASE, Options(engines=2, lv2_limit=384 * KIB)),
    **{
        f"order {order}": partial(_made, lambda seed: branchy(2 + seed, 9, 24), BASE, Options(engines=2, order=order))
        for order in ("search", "source", "exhaustive")
    },
}

IMAGES = [
    *(ImageCase(name, partial(_built, make)) for name, make in BUILDS.items()),
    ImageCase("auto, large", partial(_auto, 20, 16)),
    ImageCase("auto, small", partial(_auto, 2, 8)),
    ImageCase("timed", partial(_timed, branchy(2, 6, 16), TINY, Options(order="timed"))),
    ImageCase("timed, two engines", partial(_timed, branchy(8, 6, 16), BASE, Options(engines=2, order="timed"))),
    ImageCase("timed, many", partial(_timed, branchy(8, 9, 24), BASE, Options(engines=2, order="timed")), slow=True),
    ImageCase("measured", partial(_measured, branchy(2, 6, 16), TINY, Options())),
    ImageCase("measured, two engines", partial(_measured, branchy(5, 6, 16), BASE, Options(engines=2))),
    ImageCase("range", partial(_range, conv_net((2, 0), (2, 0), stride=2), range(3, 30), TINY)),
    ImageCase("range of rows", partial(_range, _rows_as_long(), range(3, 30), TINY)),
    ImageCase(
        "range of the encoder", partial(_range, ENCODER, range(19, 41), BASE, engines=2, order="source"), slow=True
    ),
    ImageCase("family of lengths", partial(_family, (40, 39, 38, 36))),
]
