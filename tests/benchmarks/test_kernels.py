"""``caesura bench kernels`` on the fast model of ``tiny``: its rows are right, and fail where they should."""

import pytest

from benchmarks import kernels, kernels_ladder, kernels_range
from benchmarks.lab import Lab
from caesura.views.progress import Progress
from hw.contract.params import preset


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(kernels, "REQUESTS", 12)
    monkeypatch.setattr(kernels, "CHECKED", 12)
    monkeypatch.setattr(kernels, "LOOKUPS", 500)
    monkeypatch.setattr(kernels_ladder, "ENCODER", "bert_tiny_1x16")
    monkeypatch.setattr(kernels_ladder, "ENCODED", 2)
    monkeypatch.setattr(kernels_ladder, "LONGEST", 40)
    with Progress() as progress, Lab(preset("tiny"), "model", progress) as lab:
        yield {figure.name: (lambda figure=figure: figure.row(lab)) for figure in kernels.figures()}


def test_worked_example(rows):
    row = rows["worked_example"]()
    assert row.ok and row.detail["chosen"] == {512: "a", 1024: "b", 128: "c", 2048: None}


def test_a_wrong_choice_is_no_pass(rows, monkeypatch):
    demand, library = kernels.example()
    library.remove(library.match(demand, 512))
    monkeypatch.setattr(kernels, "example", lambda: (demand, library))
    assert not rows["worked_example"]().ok


def test_lookups_are_among_all_kernels_and_of_both_kinds(rows):
    row = rows["lookup_p99"]()
    assert row.correct and row.detail["kernels"] == 10_000 and row.value > 0
    assert sum(row.detail["matched"].values()) == 500 and min(row.detail["matched"].values()) > 100


def test_lengths_are_served_as_the_row_says(rows):
    causal = rows["lengths_served_causal"]()
    assert causal.detail["served"].get("ladder", 0) > 0 and "compiled" not in causal.detail["served"]
    assert causal.detail["equal_to_onnxruntime"] == "12 of 12 compared"
    same = rows["lengths_served_same"]()
    assert same.detail["served"]["compiled"] > 0 and "ladder" not in same.detail["served"]
    assert same.detail["padding_waste_percent"] == 0 < causal.detail["padding_waste_percent"]


def test_what_did_not_happen_is_no_pass(rows, monkeypatch):
    """Without a network to pad for, nothing is served by the ladder."""
    monkeypatch.setattr(kernels, "LADDER", (384,))
    lab_row = kernels.Figure(
        "x", kernels.Target(100, 100), lambda lab: kernels._served(lab, kernels.same_network, "ladder")
    )
    with Progress() as progress, Lab(preset("tiny"), "model", progress) as lab:
        row = lab_row.row(lab)
    assert row.value == 100 and not row.ok


def test_encoders_are_compared_with_the_next_length_of_the_ladder(rows):
    with Progress() as progress, Lab(preset("base"), "model", progress) as lab:  # which has room for the weights
        row, waste = (figure.row(lab) for figure in kernels_ladder.figures())
    assert row.correct and row.detail["macs"] < row.detail["macs_of_the_ladder"] and row.value > 0
    assert row.detail["loads_left_out"] > 0 < row.detail["loads_left_out_of_the_ladder"]
    assert waste.detail["macs"] == waste.detail["needed"] == row.detail["macs"] and waste.value == 0


def test_weights_that_do_not_stay_are_no_pass(rows):
    row = rows["encoder_against_ladder"]()
    assert row.detail["loads_left_out"] == 0 and not row.ok  # in 128 KiB


def test_range_kernels_are_compared_with_exact_ones(rows, monkeypatch):
    """With a network that compiles faster in place of the encoder."""
    monkeypatch.setattr(kernels_range, "MODEL", kernels.causal_network())
    monkeypatch.setattr(kernels_range, "ENCODER_LENGTHS", range(30, 34))
    monkeypatch.setattr(kernels_range, "CONV_LENGTHS", range(8, 24))
    monkeypatch.setattr(kernels_range, "CONV_SAMPLE", 3)
    encoder, conv, file, build = (rows[figure.name]() for figure in kernels_range.figures())
    assert encoder.correct and encoder.detail["lengths"] == 4 and encoder.detail["equal_outputs"] == "4 of 4"
    assert conv.correct and conv.detail["stretches"] < 16 and conv.detail["lengths"] == 3
    assert encoder.detail["least"] <= encoder.detail["mean"] <= encoder.value
    assert 0 < file.value < 100 and build.value > 0


def test_other_outputs_are_no_pass(rows, monkeypatch):
    monkeypatch.setattr(kernels_range, "CONV_LENGTHS", range(8, 12))
    monkeypatch.setattr(kernels_range, "CONV_SAMPLE", 2)
    real, calls = kernels_range._run, []

    def run(*arguments):
        calls.append(1)
        cycles, outputs = real(*arguments)
        return cycles, [b"other"] if len(calls) == 2 else outputs

    monkeypatch.setattr(kernels_range, "_run", run)
    row = rows["range_against_exact_conv"]()
    assert not row.ok and row.detail["equal_outputs"] == "1 of 2"
