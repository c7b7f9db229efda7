"""``caesura compile``: what it says of the search for the order of layers."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.workloads import workload
from caesura.cli import app
from caesura.model_cycles import model_cycles
from hw.image.image import Image


@pytest.fixture(scope="module")
def network():
    return str(workload("squeezenet_small"))


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["compile", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow
def test_measured(network, tmp_path):
    path = tmp_path / "x.cimg"
    report = json.loads(said(network, "-o", str(path), "--order", "measured", "--budget", "3s", "--json"))
    measured = report["measured"]
    assert measured["tried"] >= 1 and measured["cycles"] <= measured["cycles_by_price"]
    assert measured["cycles"] == model_cycles(Image.load(path))
    assert report["order"][0]["subgraphs"]


def test_measured_on_the_rtl(tmp_path):
    path = tmp_path / "x.cimg"
    digits = "examples/digits/digits.onnx"
    text = said(digits, "-o", str(path), "--preset", "base", "--order", "measured", "--backend", "native")
    cycles = model_cycles(Image.load(path), "native")
    assert f"measured on the RTL (native): {cycles:,} cycles" in " ".join(text.split())
    assert cycles != model_cycles(Image.load(path))  # which are near, and on small machines often the same


def test_a_backend_is_for_orders_that_are_measured(tmp_path):
    arguments = ["compile", "examples/digits/digits.onnx", "-o", str(tmp_path / "x.cimg"), "--backend", "native"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code and "with --order timed or measured" in str(result.exception)


def test_by_price(network, tmp_path):
    text = said(network, "-o", str(tmp_path / "x.cimg"))
    assert "order search" in text and "measured" not in text
