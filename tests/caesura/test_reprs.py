"""What objects print: a line that a person reads, and in notebooks a table."""

import html
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import caesura
from caesura.scenario import parse_scenario, serve
from sim.backends import MODEL
from tests.caesura.scenario.test_real_models import content
from tests.support.hostile_names import NAME, STEERING
from tests.support.networks import DIGITS

LONGEST = 200


@pytest.fixture(scope="module")
def image():
    return caesura.compile(str(DIGITS), "tiny")


@pytest.fixture
def model(image):
    with caesura.open("tiny", MODEL) as device:
        model = device.load(image)
        model(caesura.random_samples(image, 1, 0)[0])
        yield model, device


def test_lines_say_what_a_person_wants_to_know(image, model):
    loaded, device = model
    cycles = f"{loaded.stats.cycles:,} cycles"
    for one, told in (
        (image, ("digits", "tiny", f"{len(image.meta.layers)} layers", f"{len(image.weights):,} bytes")),
        (device, ("tiny", "loaded: 'digits")),
        (loaded, ("digits", "engines 0", cycles)),
        (loaded.loaded, ("digits", "engines 0")),
        (loaded.stats, (cycles, "of the MAC peak")),
        (caesura.profile(image, loaded.stats.jobs), (f"{loaded.stats.cycles:,}",)),
    ):
        assert len(repr(one)) <= LONGEST and repr(one).startswith("<")
        assert not [part for part in told if part not in repr(one)], repr(one)
    device.unload(loaded)
    assert "unloaded" in repr(loaded.loaded) and "loaded: nothing" in repr(device)


def test_requests_and_their_run_time(image, model):
    loaded, device = model
    runtime = caesura.Runtime(device)
    request = runtime.submit(loaded, caesura.random_samples(image, 1, 0)[0], priority=3)
    assert "waiting, priority 3" in repr(request) and "requests 1, not ended 1" in repr(runtime)
    runtime.run_until_done()
    assert f"ended at cycle {request.ended:,}" in repr(request) and "not ended 0" in repr(runtime)
    assert len(repr(request)) <= LONGEST


def test_a_session_and_a_scenario(image, tmp_path):
    with caesura.InferenceSession(image, backend=MODEL) as session:
        assert "InferenceSession 'digits" in repr(session) and len(repr(session)) <= LONGEST
    scenario = parse_scenario(content({"digits": {"onnx": str(DIGITS)}}), "x.toml")
    served = serve(scenario, "fcfs", MODEL, folder=tmp_path)
    assert repr(served) == "<Served 'x': requests 1>"


class _Text(HTMLParser):
    """Collects cells, and tags."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def test_notebooks_show_a_row_for_each_layer(model):
    loaded, _ = model
    page = _Text()
    page.feed(loaded.stats._repr_html_())
    ran = [layer for layer in loaded.stats.layers if layer.engines]
    assert page.tags.count("tr") == len(ran) + 1
    assert not [layer for layer in ran if f"{layer.cycles:,}" not in page.text or layer.name not in page.text]


def test_names_are_text(image):
    """In a line they are escaped as Python does, in a table as HTML."""
    hostile = caesura.Image.from_bytes(image.to_bytes())
    hostile.meta.model = NAME
    assert not [one for one in STEERING if one in repr(hostile)]
    layer = caesura.LayerStats("<b>x</b>", "conv", "y", 1, 0, 1, (0,))
    stats = caesura.RunStats(1, 1, 1, 0.5, [layer], [])
    assert "<b>" not in stats._repr_html_() and html.escape("<b>x</b>") in stats._repr_html_()


def test_layers_as_a_frame(model, monkeypatch):
    loaded, _ = model
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        loaded.stats.to_pandas()
    monkeypatch.undo()
    pytest.importorskip("pandas")
    frame = loaded.stats.to_pandas()
    assert len(frame) == len([layer for layer in loaded.stats.layers if layer.engines])
    np.testing.assert_array_equal(frame["cycles"], frame["end"] - frame["start"])
