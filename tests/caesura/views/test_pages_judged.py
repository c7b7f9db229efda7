"""Pages are judged in a browser as a reader sees them: at three widths, light, dark and printed. No text lies over
other text, is cut off, or has less contrast than WCAG's AA asks; axe-core judges elements, a script plots."""

import itertools
import os
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import pytest

import caesura
from caesura import cli
from caesura.samples import random_samples
from caesura.sweep.picture import write_picture
from caesura.views.page import heading, write_page
from caesura.views.pages import write_bench_page, write_fpga_page
from caesura.views.tables import Column, ColumnTable, table_of
from tests.support.browser import MISSING, browser
from tests.support.networks import DIGITS

AXE = find_spec("axe_core_python")
ROOT = Path(__file__).parents[3]
SUPPORT = ROOT / "tests" / "support"
JUDGE = (SUPPORT / "judge_page.js").read_text()
WRITTEN = (SUPPORT / "canvas_text.js").read_text()
#: Widths in CSS pixels, colours of the reader's system, and what is drawn on; paper is A4.
LOOKS = [*itertools.product((400, 1280, 2560), ("light", "dark"), ("screen",)), (794, "dark", "print")]
DRAWN = "return new Promise(done => setTimeout(done, 700))"  #: plots draw after a page has loaded
ASK = (
    "; return axe.run(document, {runOnly: ['color-contrast'], resultTypes: ['violations']}).then("
    "found => found.violations.flatMap(one => one.nodes.map(node => node.target + ' ' + node.any[0].message)))"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.skipif(AXE is None, reason="needs axe-core-python, of the dev extra"),
]


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as window:
        window.before_pages(WRITTEN)
        yield window


def judged(window, path, looks=LOOKS):
    """What is wrong with a page, by how it was looked at."""
    axe = (Path(AXE.origin).parent / "axe.min.js").read_text()
    found = {}
    for width, scheme, media in looks:
        window.look(width, scheme=scheme, media=media)
        window.open(path)
        window.run("localStorage.clear()")  # where the documentation keeps the colours it was last seen in
        window.open(path)
        window.run(DRAWN)
        if wrong := window.run(JUDGE) + window.run(axe + ASK):
            found[width, scheme, media] = wrong
    return found


def run_page(folder):
    path = folder / "run.html"
    cli.app(["run", str(DIGITS), "--backend", "model", "--units", "--report", str(path)], standalone_mode=False)
    return path


def scenario_page(folder):
    path, scenario = folder / "s.html", ROOT / "examples" / "scenarios" / "driving.toml"
    cli.app(["scenario", str(scenario), "--report", str(path)], standalone_mode=False)
    return path


def bench_page(folder):
    names = ("attention, 128 tokens of 64 channels in 8 heads", "slow")
    rows = [{"name": name, "value": 74.5, "unit": "%", "must": 75.0, "aim": 85.0, "ok": False} for name in names]
    write_bench_page(folder / "b.html", {"bench": "b", "preset": "p", "backend": "model", "version": "1", "rows": rows})
    return folder / "b.html"


def sweep_page(folder):
    rows = [
        {"pes": n, "dram written bytes": n * 100_000, "area": n * 90_000, "cycles": 9 - n, "front": True, "error": ""}
        for n in (1, 2)
    ]
    write_picture(folder / "p.html", "t", rows, ["pes"])
    return folder / "p.html"


def diff_page(folder):
    for preset in ("tiny", "nano"):
        with open(folder / f"{preset}.json", "w") as out, redirect_stdout(out):
            arguments = ["run", str(DIGITS), "--preset", preset, "--backend", "model", "--json"]
            cli.app(arguments, standalone_mode=False)
    path = folder / "d.html"
    cli.app(["diff", *(str(folder / f"{one}.json") for one in ("tiny", "nano")), "--report", str(path)],
            standalone_mode=False)  # fmt: skip
    return path


def memory_page(folder):
    path = folder / "m.html"
    cli.app(["memory", str(DIGITS), "--curve", "--report", str(path)], standalone_mode=False)
    return path


def fpga_page(folder):
    names = ["machine", *(f"machine.unit{n}" for n in range(9)), *(f"machine.unit{n}.queue" for n in range(9))]
    floor = {"rooms": names[:12], "tiles": [[x, y, (x // 6 + y) % 12, 8] for x in range(70) for y in range(50)]}
    sizes = [900, *range(90, 0, -10), *range(60, 15, -5)]
    rows = [
        {"module": name, "copies": 1, "lut": size} for name, size in zip(["all", *names], [950, *sizes], strict=True)
    ]
    areas = ColumnTable("cells", [Column("module"), Column("lut", "LUT", number=True)], rows)
    path = table_of("paths", (">ns", "from", "to"), [("7.23", "hw/vec/requantise.py:125", "hw/vec/requantise.py:59")])
    write_fpga_page(folder / "f.html", "tiny on a part", [path], areas, floor)
    return folder / "f.html"


def notebook_page(folder):
    image = caesura.compile(DIGITS)
    with caesura.open("tiny", "model") as device:
        model = device.load(image)
        shown = [image._repr_html_(), device._repr_html_()]
        model(random_samples(image, 1, 0)[0])
        shown.append(model._repr_html_())
    shown = [f'<div style="overflow-x:auto">{one}</div>' for one in shown]  # as notebooks do
    head = '<!doctype html><html lang="en"><head><title>n</title><meta name="color-scheme" content="light dark"></head>'
    (folder / "n.html").write_text(f"{head}<body>{''.join(shown)}</body></html>")
    return folder / "n.html"


@pytest.mark.parametrize(
    "made", [run_page, scenario_page, bench_page, sweep_page, diff_page, memory_page, fpga_page, notebook_page]
)
def test_a_page(window, made, tmp_path, capsys):
    assert not judged(window, made(tmp_path))


@pytest.mark.skipif(find_spec("material") is None, reason="needs mkdocs-material, of the extra site")
def test_the_documentation(window, tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    for page in ("index.html", "operators/index.html", "reports/index.html"):
        assert not judged(window, tmp_path / "site" / page), page


SPOILT = {
    "has insufficient color contrast": '<p style="color:#999;background:#aaa">grey on grey</p>',
    "overlap: ": '<p>one</p><p style="margin-top:-2.4em">over the other</p>',
    "cut off at ": '<p style="width:40px;overflow:hidden;white-space:nowrap">longer than its box</p>',
    "wider than the screen": '<p style="width:3000px">wide</p>',
    "in a plot: ": "<canvas></canvas><script>const pen = document.querySelector('canvas').getContext('2d');"
    "pen.fillStyle = '#999'; pen.fillText('grey', 9, 20)</script>",
    "edge of its plot": "<canvas></canvas><script>document.querySelector('canvas').getContext('2d')"
    ".fillText('beyond', 290, 20)</script>",
}


@pytest.mark.parametrize("wrong", SPOILT)
def test_what_is_wrong_is_found(window, wrong, tmp_path):
    (tmp_path / "x.html").write_text(f'<!doctype html><html lang="en"><title>x</title><body>{SPOILT[wrong]}</body>')
    found = judged(window, tmp_path / "x.html", LOOKS[:1])
    assert any(wrong in one for one in found[LOOKS[0]])


def test_text_within_a_page_s_parts_is_judged(window, tmp_path):
    """Text of a page lies in shadows, where a careless look finds none."""
    grey = heading("grey on grey")
    grey.text = grey.text.replace("<h2>", '<h2 style="color:#999;background:#aaa">')
    write_page(tmp_path / "g.html", "t", [grey])
    assert "insufficient" in str(judged(window, tmp_path / "g.html", LOOKS[:1]))
