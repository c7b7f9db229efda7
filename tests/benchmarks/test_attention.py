"""``caesura bench attention``: small blocks on the fast model of ``tiny``; a row that is wrong is none."""

import numpy as np
import pytest

from benchmarks import attention
from benchmarks.lab import Lab
from benchmarks.workloads import inputs, workload
from benchmarks.workloads.registry import UnknownWorkload
from caesura.views.progress import Progress
from compiler import reference
from hw.contract.params import preset


@pytest.fixture
def lab():
    with Progress() as progress, Lab(preset("tiny"), "model", progress) as lab:
        yield lab


def test_a_small_block_is_compared_operator_by_operator(lab):
    measured = attention._of_peak(lab, "attention_2x16_24")
    assert measured.correct and 0 < measured.value < 100
    assert "all 4 operators of which are within their contracts" in measured.detail["outputs"]
    assert measured.detail["on_the_cpu"] == [] and measured.detail["macs"] == 2 * 24 * 24 * 32


def test_a_wrong_output_is_no_pass(lab, monkeypatch):
    right = reference.from_memory
    monkeypatch.setattr(reference, "from_memory", lambda *args: right(*args) ^ np.int8(1))
    assert not attention._of_peak(lab, "attention_2x16_24").correct


def test_names():
    assert {figure.name for figure in attention.figures()} >= {"attention_128", "bert_base_layer_128", "vit_tiny"}
    assert inputs("attention_2x16_24")["query"].shape == (1, 24, 32) and workload("attention_2x16_24").exists()
    with pytest.raises(UnknownWorkload, match="attention_HEADSxWIDTH_LENGTH"):
        workload("attention_12")
    with pytest.raises(UnknownWorkload, match="sizes must be at least 1"):
        workload("attention_0x4_4")
