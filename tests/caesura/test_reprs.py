"""What objects print: a line that a person reads, and in notebooks a table."""

import html
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import caesura
from caesura.scenario import parse_scenario, serve
from hw.contract.html_table import MOST, html_table
from sim.backends import MODEL
from sw.runtime.stats import StepOnCpu
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


def test_machines_and_fleets(image):
    for params in caesura.PRESETS.values():
        told = repr(params)
        assert repr(params.name) in told and f"{params.macs:,} MACs per cycle" in told and len(told) <= LONGEST
    devices = [caesura.open("tiny", MODEL) for _ in range(2)]
    fleet = caesura.Fleet(devices)
    for arrival in (0, 10**6):
        fleet.submit(fleet.load(image), caesura.random_samples(image, 1, 0)[0], arrival=arrival)
    assert repr(fleet) == "<Fleet of devices 2: serving 0, to come 2>"
    fleet.run_until_done()
    assert repr(fleet) == "<Fleet of devices 2: serving 0, to come 0>"
    table = rows(fleet)
    assert [row[:2] for row in table] == [["0", "tiny"], ["1", "tiny"]] and {row[4] for row in table} == {"2", "0"}


class _Text(HTMLParser):
    """Collects cells, and tags."""

    def __init__(self):
        super().__init__()
        self.tags, self.text, self.rows = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.text.append(data)
        if self.rows:
            self.rows[-1][-1] += data


def rows(told):
    """The cells of what a notebook shows, row by row, below the heads."""
    page = _Text()
    page.feed(told._repr_html_())
    assert repr(told)[1:-1] in page.text
    return page.rows[1:]


def test_notebooks_show_a_row_for_each_layer(model):
    loaded, _ = model
    page = _Text()
    page.feed(loaded.stats._repr_html_())
    ran = [layer for layer in loaded.stats.layers if layer.engines]
    assert page.tags.count("tr") == len(ran) + 1
    assert not [layer for layer in ran if f"{layer.cycles:,}" not in page.text or layer.name not in page.text]


def test_tables_of_all_that_a_notebook_ends_a_cell_with(image, model):
    loaded, device = model
    parameters = dict(rows(image.params))
    assert parameters["pes"] == str(image.params.pes) and len(parameters) == len(image.params.to_dict())
    layers = rows(image)
    assert [row[0] for row in layers] == [layer.name for layer in image.meta.layers]
    assert sum(int(row[3]) for row in layers) == len(image.meta.jobs)
    assert rows(device) == [["digits", "0", "", str(len(image.meta.layers)), f"{len(image.weights):,}"]]
    assert loaded._repr_html_() == loaded.stats._repr_html_()
    assert device.load(image)._repr_html_() == image._repr_html_()
    runtime = caesura.Runtime(device)
    requests = [runtime.submit(loaded, caesura.random_samples(image, 1, 0)[0], priority=one) for one in (0, 3)]
    assert dict(rows(requests[1]))["state"] == "waiting" and "ended" not in dict(rows(requests[1]))
    runtime.run_until_done()
    for request, row in zip(reversed(requests), rows(runtime), strict=True):
        told = dict(rows(request))
        assert row[:4] == [str(request.number), "digits", "done", str(request.priority)]
        assert (told["took"], told["done"]) == (f"{request.ended - request.started:,}", "100%")


def test_a_long_table_says_how_much_is_left_out():
    page = _Text()
    page.feed(html_table("x", ("a", "b"), [(1, 2)] * (MOST + 3)))
    assert len(page.rows) == MOST + 2 and page.rows[-1] == ["... 3 more"]


def test_layers_as_a_picture(model, monkeypatch):
    loaded, _ = model
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'caesura-npu\[plot\]'"):
        loaded.stats.plot()
    monkeypatch.undo()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    odd = replace(loaded.stats.layers[0], name="$\\frac$" + "x" * 60 + "_end")
    stats = replace(loaded.stats, layers=[odd, *loaded.stats.layers[1:]])
    axes = stats.plot()
    axes.figure.canvas.draw()  # names are not taken for formulas
    ran = [layer for layer in stats.layers if layer.engines]
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    assert bars == [(layer.start - ran[0].start, layer.cycles) for layer in ran]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[0].endswith("_end") and max(map(len, names)) <= 32
    step = StepOnCpu(("y",), "float", ran[-1].end, ran[-1].end + 100)
    with_cpu = replace(stats, on_cpu=(step,)).plot(axes.figure.subplots())
    assert with_cpu.get_yticklabels()[-1].get_text() == "CPU"
    matplotlib.pyplot.close("all")


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
