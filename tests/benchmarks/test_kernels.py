"""``caesura bench kernels`` on the fast model of ``tiny``: its rows are right, and fail where they should."""

import pytest

from benchmarks import kernels
from benchmarks.lab import Lab
from caesura.progress import Progress
from hw.contract.params import preset


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(kernels, "REQUESTS", 12)
    monkeypatch.setattr(kernels, "CHECKED", 12)
    monkeypatch.setattr(kernels, "LOOKUPS", 500)
    monkeypatch.setattr(kernels, "ENCODER", "bert_tiny_1x{}")
    monkeypatch.setattr(kernels, "ENCODED", 2)
    monkeypatch.setattr(kernels, "LONGEST", 40)
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
    row = rows["encoder_against_ladder"]()
    assert row.correct and row.detail["macs"] < row.detail["macs_of_the_ladder"] and row.value > 0
    waste = rows["encoder_padding_waste"]()
    assert waste.detail["macs"] == waste.detail["needed"] == row.detail["macs"] and waste.value == 0
