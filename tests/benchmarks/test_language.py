"""``caesura bench language``: a small decoder on the fast model of ``tiny``; a row that is wrong is none."""

import functools
import itertools

import numpy as np
import pytest

from benchmarks import decoding, lab as labs, language
from benchmarks.lab import Lab
from caesura.views.progress import Progress
from examples.words.reference import IntegerStepper
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


def test_seconds_of_a_token_are_those_of_the_simulator(lab, monkeypatch):
    """Of three tokens the median counts; a token that is wrong is none."""
    moments = itertools.cycle([0, 5, 10, 11, 20, 23])
    monkeypatch.setattr(decoding, "compiled", functools.cache(decoding.compiled))
    monkeypatch.setattr(decoding, "perf_counter", lambda: next(moments))
    name = "gpt2_block_context8"
    measured = decoding.token_seconds(lab, name)
    assert (measured.value, measured.correct) == (3, True)
    assert (measured.detail["least"], measured.detail["most"]) == (1, 5)
    assert measured.detail["simulated_cycles"] > 50_000
    right = decoding.compare_by_operator
    monkeypatch.setattr(
        decoding, "compare_by_operator", lambda *args: right(*args[:2], {k: v + 1 for k, v in args[2].items()})
    )
    assert not decoding.token_seconds(lab, name).correct


@pytest.mark.slow
def test_words_are_exact_when_each_is_interrupted(monkeypatch):
    """A score that the reference does not have is a token less."""
    right = IntegerStepper.step
    monkeypatch.setattr(decoding, "compiled_words", functools.cache(decoding.compiled_words))
    with Progress() as progress, Lab(preset("base"), "model", progress) as lab:
        measured = decoding.words_exact(lab, 4)
        assert (measured.value, measured.correct, measured.detail["interrupted"]) == (100, True, 4)
        monkeypatch.setattr(IntegerStepper, "step", lambda exact, token: right(exact, token) + (exact.position == 3))
        assert decoding.words_exact(lab, 4).value == 75


def test_rows():
    names = ["linear_15m", "linear_smollm2_135m", "int4_against_int8"]
    names += [
        "decode_15m",
        "decode_smollm2_135m",
        "four_sequences_15m",
        "four_sequences_smollm2",
        "token_seconds_15m",
        "cold_block_gpt2",
        "prefill_15m",
    ]
    names += ["decoding_halt_p99", "decoding_bytes_dumped", "words_exact"]
    assert [figure.name for figure in language.figures()] == names
