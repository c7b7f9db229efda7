"""The timelines of docs/order-search.md: two layers one after the other, and as a region."""

from pathlib import Path

from compiler import ir
from compiler.emission.objects import step_object
from compiler.emission.objects.desk import Desk
from compiler.emission.objects.step_object import ScheduledJob
from compiler.pipeline import decide
from compiler.plan.layers.step import ModelStep
from compiler.plan.options import Options
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


Program = tuple[ModelStep, list[ScheduledJob]]


def programs(monkeypatch, options: Options) -> list[Program]:
    """Each step with its jobs."""
    made, compile_all = {}, Desk.compile
    original = step_object.step_jobs

    def noted(step, context):
        made[step] = original(step, context)
        return made[step]

    def placed(self, *given):
        places.clear()
        return compile_all(self, *given)

    def weighted(self, number, question):
        places.append((question.step, made[question.step][0]))
        return as_it_is(self, number, question)

    places, as_it_is = [], Desk._weighted
    monkeypatch.setattr(step_object, "step_jobs", noted)
    monkeypatch.setattr(Desk, "compile", placed)
    monkeypatch.setattr(Desk, "_weighted", weighted)
    graph, tiny = convolution_and_pool(), preset("tiny")
    decide(graph, tiny, options, Desk(1))
    return places


def drawn(layers: list[Program]) -> list[str]:
    """A row for MAC and one for VEC: c where a convolution is at work there for most of a column, p for the pool."""
    spans = {Unit.MAC: [], Unit.VEC: []}
    begin = 0
    for step, jobs in layers:
        for job, order in jobs:
            pool = {
                id(task) for part in job.parts if not any(t.unit is Unit.MAC for t in part.tasks) for task in part.tasks
            }
            for task, start, end in zip(order.tasks, order.starts, order.ends, strict=True):
                if task.unit in spans:
                    alone = "p" if step.kind == "maxpool" else "c"
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
    with monkeypatch.context() as patch:
        before = programs(patch, Options(regions=False, order="source"))
    with monkeypatch.context() as patch:
        after = programs(patch, Options())
    assert len(before) > len(after)
    assert any(step.places for step, _ in after)
    for row in [*drawn(before), *drawn(after)]:
        assert f"  {row}\n" in page, row
