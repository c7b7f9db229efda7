"""The timelines of docs/order-search.md: two layers one after the other, and as a region."""

from pathlib import Path

from compiler import ir
from compiler.backend.kernels.layer_program import LayerProgram
from compiler.backend.objects import layer_object
from compiler.backend.objects.desk import Desk
from compiler.backend.options import Options
from compiler.backend.pipeline import build
from hw.contract.isa import Unit
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder

COLUMN = 600  #: cycles


def convolution_and_pool() -> ir.Graph:
    make = GraphBuilder(1)
    x = make.conv(make.input((1, 24, 26, 3)), 16, (1, 1))
    left = make.conv(x, 8, pads=(1, 1, 1, 1))
    right = make.pool("max", x, (3, 3), (1, 1), (1, 1, 1, 1))
    make.output(make.conv(make.concat([left, right], 3), 8, (1, 1)))
    return make.graph


def programs(monkeypatch, options: Options) -> list[LayerProgram]:
    made, places = {}, []
    original, code_of = layer_object.source_program, Desk._code

    def noted(source):
        made[source.key] = original(source)
        return made[source.key]

    def placed(self, number, layer, source):
        places.append(made[source.key])
        return code_of(self, number, layer, source)

    monkeypatch.setattr(layer_object, "source_program", noted)
    monkeypatch.setattr(Desk, "_code", placed)
    build(convolution_and_pool(), preset("tiny"), options)
    return list(places)


def drawn(layers: list[LayerProgram]) -> list[str]:
    """A row for MAC and one for VEC: c where a convolution is at work there for most of a column, p for the pool."""
    spans = {Unit.MAC: [], Unit.VEC: []}
    begin = 0
    for layer in layers:
        for job, order in layer.jobs:
            pool = {
                id(task) for part in job.parts if not any(t.unit is Unit.MAC for t in part.tasks) for task in part.tasks
            }
            for task, start, end in zip(order.tasks, order.starts, order.ends, strict=True):
                if task.unit in spans:
                    alone = "p" if layer.layer.kind == "maxpool" else "c"
                    spans[task.unit].append((begin + start, begin + end, "p" if id(task) in pool else alone))
            begin += order.cycles
    rows = []
    for unit, found in spans.items():
        row = ""
        for column in range(-(-begin // COLUMN)):
            low, high = column * COLUMN, (column + 1) * COLUMN
            busy = {letter: 0 for letter in "pc"}
            for start, end, letter in found:
                busy[letter] += max(0, min(end, high) - max(start, low))
            most = max(busy, key=lambda letter: busy[letter])
            row += most if busy[most] > COLUMN / 4 else "."
        rows.append(f"{unit.name} {row}")
    return rows


def test_timelines(monkeypatch):
    page = (Path(__file__).parents[4] / "docs" / "order-search.md").read_text()
    before = programs(monkeypatch, Options(regions=False, order="source"))
    with monkeypatch.context() as patch:
        after = programs(patch, Options())
    assert any(" + " in layer.layer.name for layer in after)
    for row in [*drawn(before), *drawn(after)]:
        assert f"  {row}\n" in page, row
