"""How much LV2 models of a scenario get: an even share, unless that costs more than their own claim."""

from pathlib import Path

import pytest

from benchmarks.workloads import workload
from caesura.scenario import model_images, parse_scenario
from caesura.views.progress import Progress
from compiler import compile_model
from hw.contract.params import preset

TINY = preset("tiny")
NETWORK = "bert_tiny_1x8"  #: in half of LV2 it takes 4.5 % more cycles than in all of it


def size_of(copies, **more):
    content = {
        "name": "x",
        "time_unit": "cycles",
        "models": {"m": {"workload": NETWORK, "copies": copies, **more}},
        "streams": [{"name": "s", "stages": [{"model": "m"}], "arrivals": {"kind": "trace", "times": [0]}}],
    }
    images = model_images.ModelImages(Progress(), jobs=1)
    return images.of(parse_scenario(content, "test"), TINY, Path())["m"].meta.lv2_bytes


@pytest.fixture
def claim():
    return compile_model(workload(NETWORK), TINY, jobs=1).meta.lv2_bytes


def test_who_would_lose_much_by_its_share_keeps_its_claim(claim):
    assert size_of(2) == claim > TINY.lv2_bytes // 2


@pytest.mark.parametrize(("more", "kept"), [(20, False), (21, True)])
def test_a_share_may_cost_what_a_claim_may(monkeypatch, claim, more, kept):
    monkeypatch.setattr(model_images, "model_cycles", lambda image: 1000 + more * (image.meta.lv2_bytes < claim))
    assert (size_of(2) == claim) == kept


def test_a_limit_that_is_given_is_kept():
    assert size_of(2, lv2_limit=40_000) <= 40_000
