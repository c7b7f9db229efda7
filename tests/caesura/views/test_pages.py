"""Pages load nothing from elsewhere, show what they should, and survive hostile names; in a browser, too, if there is
one."""

import html
import itertools
import json
import random
import re
import shutil
import subprocess

import pytest
from PIL import Image as Picture

import caesura
from caesura import cli
from caesura.samples import random_samples
from caesura.sweep.picture import write_picture
from caesura.views.charts import lv2_use, thinned, timeline
from caesura.views.page import DARK, LIGHT, heading, table, write_page
from caesura.views.pages import write_bench_page
from caesura.views.tables import table_of
from sim.trace import Span
from tests.support.hostile_names import hostile_model
from tests.support.networks import DIGITS
from tests.support.web_pages import loads

SCENARIO = 'name = "s"\n[machine.preemption]\ndump = 1\nrestore = 1\ninterval = 1\n' + "".join(
    f'[[models.{name}.layers]]\nrepeat = {count}\nload = 1\ncompute = 4\n[[streams]]\nname = "{name}"\n'
    f'stages = [{{ model = "{name}" }}]\npriority = {priority}\n'
    f'arrivals = {{ kind = "periodic", period = {period}, count = 6 }}\n'
    for name, count, priority, period in (("long", 9, 0, 50), ("urgent", 2, 1, 31))
)
LAID_OUT = ("Column", "DataTable", "Div", "Figure", "Row", "Select")
MOST = 5_000_000  #: bytes of a page


def run_page(folder, *more):
    path = folder / "run.html"
    cli.app(["run", str(DIGITS), "--backend", "model", "--report", str(path), *more], standalone_mode=False)
    return path


def opens(path):
    page = path.read_text()
    assert len(page) < MOST and not loads(page)
    return page


def test_a_run(tmp_path, capsys):
    page = opens(run_page(tmp_path, "--units", "--check"))
    assert all(text in page for text in ("conv1", "engine 0 / VEC", "check passed", "roofline", "LV2 over time"))
    assert "engine 0 / VEC" not in opens(run_page(tmp_path))


def test_a_scenario_with_preemptions(tmp_path, capsys):
    (tmp_path / "s.toml").write_text(SCENARIO)
    path = tmp_path / "s.html"
    cli.app(["scenario", str(tmp_path / "s.toml"), "--report", str(path), "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["preemptions"] > 0
    page = opens(path)
    assert all(text in page for text in ("accelerator / engine 0", "urgent", "Latency"))


def test_a_bench(tmp_path):
    rows = [
        {"name": name, "value": value, "unit": unit, "must": 65.0, "aim": 85.0, "ok": value is not None and value >= 65}
        for name, value, unit in (("attention", 74.5, "%"), ("slow", 3.0, "%"), ("absent", None, "%"), ("x", 99.0, "s"))
    ]
    write_bench_page(tmp_path / "b.html", {"bench": "b", "preset": "p", "backend": "m", "version": "1", "rows": rows})
    assert opens(tmp_path / "b.html").count("NOT OK") >= 2


def test_names_are_text(tmp_path):
    hostile = '</script><script src="https://example.org/x.js"></script><img src=x onerror=alert(1)>'
    spans = [Span((hostile, hostile), hostile, 0, 10, hostile)]
    write_page(
        tmp_path / "h.html",
        hostile,
        [heading(hostile), table(table_of("", (hostile, f">{hostile}"), [(hostile, hostile)])), timeline(spans)],
    )
    opens(tmp_path / "h.html")


@pytest.mark.parametrize("seed", range(6))
def test_thinned_timelines_cover_the_same_time(seed):
    rng = random.Random(seed)
    print(f"seed {seed}")
    spans, ends = [], [0, 0, 0]
    for _ in range(4000):
        track = rng.randrange(3)
        start = ends[track] + rng.choice((0, 0, 1, 50))
        ends[track] = start + rng.choice((1, 3, 200))
        spans.append(Span(("engine", str(track)), f"layer {start // 5000}", start, ends[track], "net"))
    found = thinned(spans, 500)
    assert len(found) <= 500 and thinned(spans, 5000) == sorted(spans, key=lambda s: (s.track, s.start))
    for track in range(3):
        mine = [span for span in found if span.track[1] == str(track)]
        assert mine[-1].end == ends[track] and all(a.end <= b.start for a, b in itertools.pairwise(mine))


def test_lv2_holds_no_more_than_there_is():
    image = caesura.compile(DIGITS)
    with caesura.open("tiny", "model") as device:
        _, stats = device.load(image).run(random_samples(image, 1, 0)[0])
    times, held, loaded = lv2_use(stats.jobs)
    assert times == sorted(times) and max(loaded) > 0 and loaded[-1] == 0
    assert all(a >= 0 and b >= 0 and a + b <= image.params.lv2_bytes for a, b in zip(held, loaded, strict=True))


def luminance(colour):
    """As WCAG 2 defines it, of ``#rrggbb``."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_text_can_be_read(colours):
    """Contrast of at least 4.5, as WCAG's AA asks."""
    dark, light = sorted(luminance(colours[name]) for name in ("ink", "paper"))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_a_page_is_as_wide_as_its_screen(tmp_path, capsys):
    """Nothing has a width of its own, and tables that are wider scroll by themselves; colours are those of the reader's
    system, and plots, whose text is dark, stay on light paper."""
    page = opens(run_page(tmp_path, "--units"))
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert (
        f"prefers-color-scheme:dark){{:root{{--ink:{DARK['ink']}" in page and "max-width:75em;overflow-x:auto" in page
    )
    parts = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    drawn = [one for one in models(json.loads(html.unescape(parts[1]))) if one["name"] in LAID_OUT]
    assert {one["name"] for one in drawn} == {"Column", "Div", "Figure"}
    assert {one["attributes"].get("sizing_mode") for one in drawn} == {"stretch_width"}
    assert not [one for one in drawn if {"width", "min_width"} & set(one["attributes"])]
    sheets = [str(one["attributes"].get("stylesheets")) for one in drawn if one["name"] == "Figure"]
    assert all(f":host{{background:{LIGHT['paper']};color:{LIGHT['ink']}" in sheet for sheet in sheets)


def test_a_sweep_is_as_wide_as_its_screen(tmp_path):
    rows = [{"pes": pes, "area": pes, "cycles": 9 - pes, "front": True, "error": ""} for pes in (1, 2)]
    write_picture(tmp_path / "p.html", "t", rows, ["pes"])
    parts = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', opens(tmp_path / "p.html"), re.DOTALL)
    drawn = [one for one in models(json.loads(html.unescape(parts[1]))) if one["name"] in LAID_OUT]
    assert {one["name"] for one in drawn} >= {"Select", "Row", "Figure", "DataTable"}
    assert {one["attributes"].get("sizing_mode") for one in drawn} == {"stretch_width"}


def models(value):
    """All models of Bokeh in the JSON of a page."""
    if isinstance(value, dict) and value.get("type") == "object" and "attributes" in value:
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from models(one)


def browsed(folder, path, *more):
    command = [
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}", "--window-size=1200,1600", "--virtual-time-budget=8000",
        *more, path.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


#: Counts what names have become once all is drawn, in shadows too, and says so in the title.
COUNT = """<script>
const all = root => [...root.querySelectorAll("*")].flatMap(e => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])])
setTimeout(() => {
  const found = all(document)
  const linking = attribute => attribute.name.includes("href") && attribute.value.includes("javascript:")
  const links = found.filter(e => [...e.attributes].some(linking))
  const formulas = found.filter(e => e.localName == "mjx-container" || e.hasAttribute("data-mml-node"))
  document.title = `${found.length > 50} ${links.length} links, ${formulas.length} formulas`
}, 4000)
</script>"""


@pytest.mark.skipif(not shutil.which("chromium"), reason="Chromium is not installed")
def test_names_are_text_in_a_browser(tmp_path, capsys):
    path = tmp_path / "run.html"
    model = hostile_model(tmp_path / "model.onnx", DIGITS)
    cli.app(["run", str(model), "--backend", "model", "--report", str(path)], standalone_mode=False)
    path.write_text(path.read_text().replace("</body>", f"{COUNT}</body>"))
    assert "<title>true 0 links, 0 formulas</title>" in browsed(tmp_path, path, "--dump-dom").stdout


@pytest.mark.skipif(not shutil.which("chromium"), reason="Chromium is not installed")
def test_in_a_browser(tmp_path, capsys):
    """Without a network, it draws plots and says no error."""
    path, shot = run_page(tmp_path, "--units"), tmp_path / "shot.png"
    done = browsed(tmp_path, path, f"--screenshot={shot}")
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "[bokeh" not in line]
    assert not console, console
    with Picture.open(shot) as picture:
        colours = picture.convert("RGB").getcolors(1 << 24)
    assert colours and sum(count > 300 for count, _ in colours) >= 8, "plots have bars in many colours"
