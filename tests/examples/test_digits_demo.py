"""The demo on a fake SoC that executes with the functional model."""

import numpy as np
import pytest

import caesura
from examples.digits import MODEL, SAMPLES, demo
from sim.model.bus import ModelBus
from tests.system.command import caesura_command


@pytest.fixture
def run_demo(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(caesura, "open", lambda preset, *_: caesura.Device(ModelBus(caesura.PRESETS[preset])))
        monkeypatch.setattr("sys.argv", ["demo", *arguments])
        code = demo.main()
        return code, capsys.readouterr().out

    return run


def test_every_output_equals_onnxruntime(run_demo):
    code, out = run_demo("--samples", "20")
    assert code == 0
    assert "20 of 20 correct; outputs equal onnxruntime's integer kernels bit for bit in 20 of 20" in " ".join(
        out.split()
    )


def test_a_difference_is_shown_and_fails(run_demo, monkeypatch):
    wanted = demo.reference_logits(MODEL, np.load(SAMPLES)["input"][:3])
    wanted[1, 4] = np.nextafter(wanted[1, 4], np.float32(np.inf))
    monkeypatch.setattr(demo, "reference_logits", lambda *_: wanted)
    code, out = run_demo("--samples", "3")
    assert code == 1
    assert out.count("NO") == 1 and "in 2 of 3" in " ".join(out.split())


def test_it_says_what_this_is_and_what_to_do_next(run_demo):
    _, out = run_demo("--samples", "1")
    assert out.startswith("Caesura is an open NPU that you can run")
    _, command = out.rstrip().rsplit("\n", 1)
    name, *arguments = command.split()
    assert name.endswith("caesura")
    code, told, err = caesura_command(*arguments, "--backend", "model")
    assert code == 0, err
    assert "where the MAC cycles went" in told
