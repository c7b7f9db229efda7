"""A plan that is written and read is the same; what is wrong in a file is named."""

import json
import math
from dataclasses import replace
from enum import Enum

import numpy as np
import pytest

from caesura import cli
from compiler.compile import compile_with_report
from compiler.pipeline import build
from compiler.plan.json_form import decoded, encoded
from compiler.plan.options import Options
from compiler.plan.order.dimensions import Dimension
from compiler.plan.plan import BufferPlan, ImageCut, InputLoad, PiecesRead, Plan, Rewrite
from compiler.plan.plan_error import PlanError
from hw.contract.params import preset
from tests.support.graphs import residual_block
from tests.support.image_cases import BUILDS
from tests.support.networks import DIGITS

TINY = preset("tiny")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return build(residual_block(1).graph, TINY, Options(), jobs=1)[1]


def numbers(value):
    """All numbers in ``value``."""
    if isinstance(value, tuple | list):
        return [number for one in value for number in numbers(one)]
    if hasattr(value, "__dataclass_fields__"):
        return numbers([getattr(value, name) for name in value.__dataclass_fields__])
    return [value] if isinstance(value, int | float | np.generic) and not isinstance(value, Enum) else []


@pytest.mark.parametrize("name", ["layers 6", "layers 7", "rows base 2", "CPU steps", "split", "random 3"])
def test_what_is_read_is_what_was_written(tmp_path, name):
    """Numbers are Python's own, though shapes may be NumPy's."""
    made = build(*BUILDS[name](), jobs=1)[1]
    made.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    assert read == made
    assert {type(number) for number in numbers(read)} <= {int, float, bool}
    assert [len(buffer.tensors) for buffer in read.memory.buffers] == [len(b.tensors) for b in made.memory.buffers]


def test_numbers_of_numpy_are_written_as_numbers():
    odd = BufferPlan(("x",), 6, np.int64(64), np.int32(12), int(np.int8(3)))
    text = json.dumps(encoded(odd))
    assert decoded(BufferPlan, json.loads(text), "here") == BufferPlan(("x",), 6, 64, 12, 3)


@pytest.mark.parametrize(
    "value",
    [
        ImageCut(frozenset({"b", "a"}), Dimension.HEIGHT, 3),
        ImageCut(frozenset({"b"}), Dimension.FRAMES, 3, (Dimension.HEIGHT, 2)),
        InputLoad("x"),
        PiecesRead("x"),
    ],
)
def test_kinds_are_told_apart(value):
    assert decoded(Rewrite, json.loads(json.dumps(encoded(value))), "here") == value


def test_numbers_without_end(plan, tmp_path):
    assert plan.options.order_seconds == math.inf
    replace(plan, options=replace(plan.options, order_seconds=-math.inf)).write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json").options.order_seconds == -math.inf


def test_every_step_and_buffer_has_a_line(plan, tmp_path):
    plan.write(tmp_path / "plan.json")
    lines = (tmp_path / "plan.json").read_text().splitlines()
    assert sum(line.lstrip().startswith('{"layers"') for line in lines) == len(plan.steps)
    assert sum(line.lstrip().startswith('{"tensors"') for line in lines) == len(plan.memory.buffers)


def edited(fields, path, value):
    *outer, last = path
    for one in outer:
        fields = fields[one]
    if value is None:
        del fields[last]
    else:
        fields[last] = value


@pytest.mark.parametrize(
    "path, value, told",
    [
        (["version"], 2, "not a plan of version 1"),
        (["steps", 1, "tiles", 0, "kind"], "conf", r"steps\[1\].tiles\[0\]: a ConvTiles or .* is expected, not"),
        (["steps", 0, "tiles", 0, "by"], "rowz", r"steps\[0\].tiles\[0\].by: one of 'channels', 'pixels', 'rows' is"),
        (["steps", 0, "tiles", 0, "tiling", "rows"], "4", r"tiling.rows: a whole number is expected, not '4'"),
        (["steps", 0, "tiles", 0, "tiling", "fold"], 1, r"tiling.fold: true or false is expected, not 1"),
        (["steps", 0, "jobs", 0, "cuts"], 3, r"jobs\[0\].cuts: a list is expected, not 3"),
        (["memory", "staging", "size"], None, "memory.staging: 'size' is missing in a StagingArea"),
        (["memory", "stagings"], 1, "memory: 'stagings' is unknown in a MemoryPlan"),
        (["steps", 0, "tiles", 0, "shape"], [1], "shape: 2 values are expected, not 1"),
    ],
)
def test_what_is_wrong_is_named(plan, tmp_path, path, value, told):
    fields = encoded(plan)
    edited(fields, path, value)
    (tmp_path / "plan.json").write_text(json.dumps(fields))
    with pytest.raises(PlanError, match=told):
        Plan.read(tmp_path / "plan.json")


def test_a_file_that_is_no_plan(tmp_path):
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(PlanError, match=r"plan\.json: no plan"):
        Plan.read(tmp_path / "plan.json")


@pytest.mark.parametrize("options", [{}, {"engines": "auto"}])
def test_the_command_writes_the_plan_of_the_image(tmp_path, monkeypatch, options):
    chosen = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    paths = [str(tmp_path / "digits.cimg"), "--plan", str(tmp_path / "plan.json")]
    monkeypatch.setattr("sys.argv", ["caesura", "compile", str(DIGITS), "-o", *paths, *chosen])
    cli.app(standalone_mode=False)
    assert Plan.read(tmp_path / "plan.json") == compile_with_report(DIGITS, TINY, **options).plan
