"""``caesura bench language``: a small decoder on the fast model of ``tiny``; a row that is wrong is none."""

import numpy as np
import pytest

from benchmarks import lab as labs, language
from benchmarks.lab import Lab
from caesura.views.progress import Progress
from hw.contract.params import preset


@pytest.fixture
def lab():
    with Progress() as progress, Lab(preset("tiny"), "model", progress) as lab:
        yield lab


def test_the_share_counts_the_weights_alone(lab):
    measured = language.of_bandwidth(lab, "linear_stories15m_1")
    assert measured.correct and measured.detail["weights"] == 995_328
    assert measured.value == pytest.approx(100 * 995_328 / 8 / measured.detail["cycles"])
    assert 30 < measured.value < 96.4  # refresh alone takes the rest


def test_int4_takes_fewer_cycles_for_the_same_layers(lab):
    measured = language.int4_against_int8(lab, "linear_stories15m_1")
    assert measured.correct and measured.detail["weights"] == 995_328 // 2
    assert measured.value == pytest.approx(measured.detail["int8_cycles"] / measured.detail["cycles"])
    assert 1.2 < measured.value < 2


def test_a_wrong_output_is_no_pass(lab, monkeypatch):
    right = labs.golden.golden_outputs
    monkeypatch.setattr(
        labs.golden, "golden_outputs", lambda *args: {name: value ^ np.int8(1) for name, value in right(*args).items()}
    )
    assert not language.of_bandwidth(lab, "linear_stories15m_1").correct
    assert not language.int4_against_int8(lab, "linear_stories15m_1").correct


def test_rows():
    names = ["linear_15m", "linear_smollm2_135m", "int4_against_int8"]
    assert [figure.name for figure in language.figures()] == names
