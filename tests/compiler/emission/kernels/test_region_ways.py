"""Regions whose convolutions take turns on halves of LV0: chosen where they take less, exact, and kept in plans."""

from dataclasses import replace

import pytest

from compiler import ir
from compiler.emission.objects.desk import Desk
from compiler.pipeline import build, emit
from compiler.plan.memory.operand import Lv0Part, Lv1Area
from compiler.plan.options import Options
from compiler.plan.plan import Plan
from compiler.plan.plan_error import PlanError
from compiler.plan.tiles import ConvTiles
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.params import preset
from hw.image.image import Image
from sim.model import ModelBus
from sw.driver import Device
from tests.support.graphs import GraphBuilder, check

BASE = preset("base")
HALVES = "compiler.emission.kernels.region._HALVES"
_LIMIT = 1_000_000  #: cycles


@pytest.fixture(autouse=True)
def _regions_of_any_size(monkeypatch):
    """In graphs of a few layers a region is most of the graph."""
    monkeypatch.setattr("compiler.plan.regions.regions._PART", 1.0)


def shuffle_like(size: int = 28, seed: int = 1) -> ir.Graph:
    """A wide convolution with a sum, on whose results the vector unit works longest, and a narrow one behind it, on
    which the arrays do."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((1, size, size, 8)), 240, (1, 1))
    narrow = make.conv(x, 48, (1, 1))
    wide = make.eltwise("add", make.conv(narrow, 240, (1, 1), groups=3), x)
    make.output(make.conv(wide, 48, (1, 1)))
    return make.graph


def cycles(image: Image) -> int:
    """The cycles of an inference on the fast model."""
    device = Device(ModelBus(image.params, data=False))
    model = device.load(image)
    device.begin(model, _LIMIT)
    results = device.collect(device.submit(model, range(len(image.meta.jobs)), limit=_LIMIT), _LIMIT)
    return max(one.end for one in results) - min(one.start for one in results)


def halved(plan: Plan) -> list[ConvTiles]:
    """The tiles of convolutions that have half of LV0."""
    return [one for step in plan.steps for one in step.tiles or () if _is_halved(one)]


@pytest.mark.parametrize("engines", [1, 2])
def test_two_convolutions_take_turns(monkeypatch, engines):
    graph, options = shuffle_like(), Options(engines=engines)
    image, plan = build(graph, BASE, options)
    assert {one.lv0.part for one in halved(plan)} == {0, 1}
    monkeypatch.setattr(HALVES, ())
    before, _ = build(shuffle_like(), BASE, options)
    assert cycles(image) < 0.97 * cycles(before)


@pytest.mark.parametrize("seed", range(3))
def test_turns_are_exact(seed):
    """With races looked for, on images of odd sizes too."""
    graph = shuffle_like((28, 17, 21)[seed], seed)
    assert halved(build(graph, BASE, Options(engines=2))[1])
    check(graph, BASE.replace(engines=2), engines=2)


def test_each_half_is_used_by_every_second_convolution():
    """LD0 fills, and MAC writes, no byte of the other half."""
    graph, params = shuffle_like(), BASE
    image, plan = build(graph, params, Options())
    parts = {one.lv0.part for one in halved(plan)}
    rows = {insn["acc"] // (params.lv0_acc_rows // 2) for insn in _instructions(image) if insn.op is Op.MAC}
    assert parts == rows == {0, 1}


def test_a_plan_keeps_the_halves(tmp_path):
    graph, options = shuffle_like(), Options(engines=2)
    image, plan = build(graph, BASE, options)
    plan.write(tmp_path / "plan.json")
    with Desk() as desk:
        assert emit(Plan.read(tmp_path / "plan.json"), graph, desk).to_bytes() == image.to_bytes()
        number, step = next((i, one) for i, one in enumerate(plan.steps) if any(map(_is_halved, one.tiles or ())))
        tiles = tuple(replace(one, lv0=Lv0Part(2, 3)) if _is_halved(one) else one for one in step.tiles)
        wrong = replace(plan, steps=(*plan.steps[:number], replace(step, tiles=tiles), *plan.steps[number + 1 :]))
        with pytest.raises(PlanError, match=r"tiles\.lv0 is"):
            emit(wrong, graph, desk)


def test_parts_of_memories_lie_side_by_side():
    for total, parts in ((64, 2), (7, 2), (9, 4)):
        places = [range(first, first + size) for first, size in (Lv0Part(i, parts).of(total) for i in range(parts))]
        held = [place for one in places for place in one]
        assert len(set(held)) == len(held) and set(held) <= set(range(total))
    whole = Lv1Area(256, 32 * BASE.lv1_word + 8)
    one, other = (whole.part(Lv0Part(i, 2), BASE) for i in (0, 1))
    assert one.base == 256 and one.base + one.size == other.base and other.base + other.size <= whole.base + whole.size


def _is_halved(tiles: object) -> bool:
    return isinstance(tiles, ConvTiles) and tiles.lv0.parts == 2


def _instructions(image: Image) -> list[Insn]:
    return [Insn.decode(image.code[at : at + INSN_BYTES]) for at in range(0, len(image.code), INSN_BYTES)]
