"""The models of the corpus of digests: recorded networks, generated graphs, and a graph for each kind of layer.

Every model is compiled for several presets and numbers of engines. All of them are small, so that an ordinary test run
can afford to compile them all.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from compiler import ir
from compiler.frontend import import_model
from hw.contract.params import KIB, SocParams, preset
from tests.support.graphs import GraphBuilder, late_weights, residual_block
from tests.support.networks import DIGITS
from tests.support.placed import branchy
from tests.support.random_graphs import random_graph
from tests.support.split_graphs import random_run, wide_middle

_SAME = (1, 1, 1, 1)  #: pads that keep the size under a 3x3 kernel
#: Presets and engines: all, and those for which each kind of layer is compiled.
ALL = (("tiny", 1), ("tiny", 2), ("base", 1), ("base", 2), ("ecp5", 1), ("cluster64", 2))
_MOST = tuple(one for one in ALL if one != ("base", 1))


@dataclass(frozen=True)
class ModelCase:
    """A model for ``engines`` of a preset. ``make`` gives its graph, a fresh one with every call; ``lv2_limit`` is the
    part of LV2 that it may use (0: all), and ``placed`` says that engines share no layer."""

    model: str
    make: Callable[[], ir.Graph]
    preset: str
    engines: int
    lv2_limit: int = 0
    placed: bool = False

    @property
    def name(self) -> str:
        """The name of the case, which no other has."""
        return f"{self.preset}x{self.engines} {self.model}"

    @property
    def params(self) -> SocParams:
        """The hardware."""
        return hardware(self.preset, self.engines)


def hardware(name: str, engines: int) -> SocParams:
    """The preset, with as many engines as are asked for where it has fewer."""
    params = preset(name)
    return params if engines <= params.engines else params.replace(engines=engines)


def model_cases() -> Iterator[ModelCase]:
    """All cases whose model is there."""
    for name, path, wanted in _NETWORKS:
        if path.exists():
            yield from (ModelCase(name, partial(import_model, path, name=name), *one) for one in wanted)
    for name, make, wanted, limit in _GENERATED:
        yield from (ModelCase(name, make, *one, limit) for one in wanted)
    yield ModelCase("branchy, placed", partial(branchy, 3, 8), "base", 2, placed=True)
    for name, layers in _LAYERS.items():
        yield from (ModelCase(name, partial(_layer_graph, layers), *one) for one in _MOST)


def _outside(name: str) -> Path:
    return Path(os.environ.get("CAESURA_MODELS", "models")) / f"{name}.onnx"


#: Recorded networks: a name, the file, and the presets and engines that they are compiled for.
_NETWORKS = (
    ("digits", DIGITS, ALL),
    ("kws_dscnn_int8", _outside("kws_dscnn_int8"), (("base", 2),)),
    ("ic_resnet8_int8", _outside("ic_resnet8_int8"), (("cluster64", 2),)),
)


def _split_run() -> ir.Graph:
    return random_run(4)[0]


#: Generated graphs: a name, what makes them, presets and engines, and the part of LV2.
_GENERATED = (
    ("residual block", lambda: residual_block(1).graph, ALL, 0),
    ("late weights", partial(late_weights, 2), (("base", 2), ("ecp5", 1)), 0),
    ("branchy", partial(branchy, 3, 8), (("tiny", 1), ("base", 2)), 0),
    ("branchy wide", partial(branchy, 5, 8, 40), (("base", 1), ("cluster64", 2)), 0),
    ("wide middle", lambda: wide_middle(64).graph, (("base", 2),), 384 * KIB),
    ("run", _split_run, (("tiny", 1), ("base", 2)), 0),
    *(
        (f"onnx {seed}", partial(lambda seed: import_model(random_graph(seed)), seed), ALL[:4:3], 0)
        for seed in (1, 2, 5)
    ),
)


def _layer_graph(layers: Callable[[GraphBuilder], str]) -> ir.Graph:
    make = GraphBuilder(11)
    make.output(layers(make))
    return make.graph


def _conv(shape: tuple[int, ...], outs: int, *how: object, **also: object) -> Callable[[GraphBuilder], str]:
    return lambda make: make.conv(make.input(shape), outs, *how, **also)  # type: ignore[arg-type]


#: By kind of layer a graph of one, with sizes that leave a rest behind the last tile.
_LAYERS: dict[str, Callable[[GraphBuilder], str]] = {
    "conv 1x1": _conv((1, 13, 15, 40), 52, (1, 1)),
    "conv 3x3": _conv((1, 14, 14, 36), 40, pads=_SAME),
    "conv of few channels": _conv((1, 25, 25, 3), 16, (7, 7), (2, 2), (3, 3, 3, 3)),
    "conv with dilation": _conv((2, 15, 12, 16), 24, dilations=(2, 2)),
    "conv of groups": _conv((1, 12, 12, 32), 32, pads=_SAME, groups=4),
    "conv with table": _conv((1, 11, 9, 20), 20, pads=_SAME, table=True),
    "depthwise": _conv((1, 23, 21, 48), 48, pads=_SAME, groups=48),
    "depthwise, strides": _conv((1, 23, 21, 72), 72, (5, 5), (2, 2), (2, 2, 2, 2), groups=72),
    "fully connected": _conv((1, 1, 1, 500), 130, (1, 1)),
    "conv and sum": lambda make: make.eltwise(
        "add", x := make.conv(make.input((1, 12, 13, 24)), 24, (1, 1)), make.conv(x, 24, pads=_SAME)
    ),
    "max pool": lambda make: make.pool("max", make.input((1, 28, 26, 40)), (3, 3), (2, 2), (1, 1, 0, 0)),
    "average pool": lambda make: make.pool("avg", make.input((1, 14, 14, 40)), (2, 2), (2, 2)),
    "sum": lambda make: make.eltwise("add", make.input((1, 17, 15, 30)), make.input((1, 17, 15, 30))),
    "product of elements": lambda make: make.eltwise("mul", make.input((1, 9, 9, 64)), make.input((1, 9, 9, 64))),
    "table": lambda make: make.table(make.input((1, 19, 14, 33))),
    "attention": lambda make: make.attention(21, 2, 16, mask=True),
    "softmax": lambda make: make.softmax(make.input((4, 18, 37))),
    "layer norm": lambda make: make.layer_norm(make.input((1, 37, 48))),
    "concatenation": lambda make: make.concat(
        [make.input((1, 9, 8, 24)), make.table(make.input((1, 9, 8, 12)))], 3
    ),
    "transposition": lambda make: make.permute(make.input((1, 9, 8, 24)), (0, 3, 1, 2)),
    "pad": lambda make: make.pad(make.input((1, 9, 8, 24)), (1, 2, 0, 3)),
}  # fmt: skip
