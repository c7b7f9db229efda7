"""The encoder on the fast model: one model for every length, bits of the integer reference, and the demo."""

import numpy as np
import pytest

import caesura
from caesura.checks import check
from compiler.compile import compile_with_report
from compiler.dynamic_dimension import DynamicDimension
from examples.encoder import LENGTHS, MODEL, demo
from examples.encoder.reference import integer_logits
from sw.runtime import InputError


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache folder of the test's own: every length is compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def run_demo(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["demo", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        code = demo.main()
        return code, " ".join(capsys.readouterr().out.split())

    return run


def test_demo(run_demo, monkeypatch):
    """Every output equals the reference, a length is compiled once and kept in the cache folder; a difference is shown,
    and fails."""
    arguments = ("--samples", "3", "--preset", "tiny", "--backend", "model")
    code, out = run_demo(*arguments)
    assert code == 0
    assert "3 of 3 correct (100.00%); outputs equal the reference bit for bit in 3 of 3; compiled for it 1" in out
    assert (out.count("compiled for it"), out.count("kernel was there")) == (1 + 1, 2 + 1)  # rows and summary

    wanted = integer_logits(demo.samples(3)[0])
    wanted[1, 4] = np.nextafter(wanted[1, 4], np.float32(np.inf))
    monkeypatch.setattr(demo, "integer_logits", lambda *_: wanted)
    code, out = run_demo(*arguments)
    assert code == 1
    assert out.count("NO") == 1 and "in 2 of 3; kernel from the cache folder 1, kernel was there 2" in out


@pytest.mark.slow
def test_any_length_in_the_range():
    """A longer sequence than any image has, and an error for one that is outside."""
    rng = np.random.default_rng(9)
    tokens = np.concatenate([demo.samples(2)[0][0], demo.samples(2)[0][1]])[rng.permutation(60)]
    with caesura.open("base", "model") as device, caesura.dynamic(MODEL, device, range(1, 65)) as model:
        for length in (1, 60):
            image = tokens[:length]
            np.testing.assert_array_equal(model(image[np.newaxis]), integer_logits([image]))
            assert model.last.how == "compiled"
        with pytest.raises(InputError, match=r"length 65 .* is not in the range"):
            model(np.zeros((1, 65, 25), np.float32))


@pytest.mark.slow
def test_every_layer_is_within_its_contract(tmp_path):
    """As ``caesura run --check`` judges them."""
    length = LENGTHS[0]
    path = tmp_path / "fixed.onnx"
    path.write_bytes(DynamicDimension.of(MODEL).fixed(length).SerializeToString())
    image = next(image for image in demo.samples(359)[0] if len(image) == length)
    feed = {"tokens": image[np.newaxis]}
    with caesura.open("tiny", "model") as device:
        observing = compile_with_report(path, device.params, observe=True, engines=1)
        outputs, _ = device.load(caesura.compile(path, "tiny")).run(feed)
        result = check(device, path, observing.image, observing.graph, [feed], [outputs])
    assert result.ok, result.summary()
