"""Figures in README and docs are those of the ledger, and no table of figures is written by hand."""

import fnmatch
import re
from dataclasses import replace

import pytest

from benchmarks.ledger import pages
from benchmarks.ledger.ledger import Ledger
from benchmarks.ledger.pages import BLOCK, FENCED, named_figures, written
from benchmarks.ledger.plan import PLAN
from caesura.docgen import PAGES
from tests.benchmarks.ledger.test_ledger import ROW

#: Pages whose tables are written from other tables of the code.
REFERENCE = {*PAGES, "image-format.md"}
ROWS = {f"{entry.name}/{figure.name}" for entry in PLAN for figure in entry.figures()}
NAMES = {key.partition("/")[2] for key in ROWS}
NUMBER = re.compile(r"\**[-−≤≥]?\s?[\d,.]+\s?(%|x|ms|µs|us|s|MB|bytes|units|cycles|CPU s|cycles/s)?\**", re.ASCII)
COMMIT = re.compile(r"`[0-9a-f]{7,10}`")


def tables(text):
    """Each table outside of markers, its cells by row, with the two paragraphs before it."""
    before, table = [], []
    for line in [*FENCED.sub("", BLOCK.sub("", text)).splitlines(), ""]:
        if line.lstrip().startswith("|"):
            table.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if table:
            yield " ".join(before), table
            before, table = [], []
        before.append(line)
        while before.count("") > 2:
            del before[: before.index("") + 1]


def written_by_hand(text):
    """What is wrong with the tables of a page that are written by hand.

    One with a column ``must`` or ``aim``, or with a row that is named like one of a bench and holds a number, belongs
    to the ledger. One in which half of the cells behind the first column are numbers was measured: it says at which
    commit.
    """
    problems = []
    for before, (header, _, *rows) in tables(text):
        told = f"the table '{' | '.join(header)}'"
        if {cell.lower() for cell in header} & {"must", "aim"}:
            problems.append(f"{told} has targets: it stands between markers")
        for name, *cells in rows:
            if name.strip("`* ") in NAMES and any(map(NUMBER.fullmatch, cells)):
                problems.append(f"{told} has the figure {name}: it stands between markers")
        cells = [cell for row in rows for cell in row[1:] if cell]
        numbers = [cell for cell in cells if NUMBER.fullmatch(cell)]
        if len(numbers) > 1 and len(numbers) >= len(cells) / 2 and not COMMIT.search(before):
            problems.append(f"{told} was measured: the text before it says how, and at which `commit`")
    return problems


def checked_pages():
    """The README, the manual, the notes, and the decisions."""
    folder = pages.ROOT / "docs"
    return [pages.ROOT / "README.md", *(page for page in sorted(folder.rglob("*.md")) if page.name not in REFERENCE)]


def test_pages_show_the_ledger():
    ledger = Ledger.read()
    for page in pages.pages():
        text = page.read_text()
        assert written(text, ledger) == text, f"{page}: run python -m benchmarks.ledger.pages"


@pytest.mark.parametrize("page", checked_pages(), ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_no_figures_are_written_by_hand(page):
    assert written_by_hand(page.read_text()) == []


def test_pages_name_figures_that_exist():
    """Those with a wildcard may have none yet; models that are not part of the project bring rows of their own."""
    named = {name for page in pages.pages() for name in named_figures(page.read_text())}
    assert {name for name in named if "*" not in name} - ROWS == set() and len(named) > 50
    assert {name.partition("/")[0] for name in named} <= {entry.name for entry in PLAN}


def test_pages_show_every_figure():
    named = {name for page in pages.pages() for name in named_figures(page.read_text())}
    assert {row for row in ROWS if not any(fnmatch.fnmatchcase(row, name) for name in named)} == set()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("| work | measured | must |\n|---|---|---|\n| all | good | 3 |\n", "has targets"),
        ("| row | value |\n|---|---|\n| `vit_tiny` | 83.3 % |\n", "has the figure `vit_tiny`"),
        ("| network | cycles |\n|---|---|\n| ours | 8,221,529 |\n| theirs | 9,300,111 |\n", "was measured"),
        ("By `caesura run` at `0123abc`:\n\n| network | cycles |\n|---|---|\n| ours | 8,221,529 |\n", None),
        ("| row | counted |\n|---|---|\n| `resnet50` | MACs / cycles |\n", None),
        ("<!-- figures a/b -->\n| a | must |\n|---|---|\n| b | 3 |\n<!-- /figures -->\n", None),
    ],
)
def test_tables_by_hand_are_seen(text, problem):
    found = written_by_hand(text)
    assert any(problem in one for one in found) if problem else found == []


LEDGER = Ledger(
    {
        "kernels/lookup_p99": replace(
            ROW, name="lookup_p99", value=1.0849, unit="us", must=2, aim=0.5, at_most=True, place=1, dirty=True,
            machine={"cores": 2, "cpu": "Fast"}, detail={"once": {"cycles": 1234567}, "kernels": 10},
        ),
        "kernels/worked_example": replace(ROW, name="worked_example", value=3.0, unit="of 4", ok=False, place=0),
        "kernels/lost": replace(ROW, name="lost", value=None, ok=True, skipped=True, place=2),
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "unit", "bar"),
    [(68.7, "%", "█" * 14 + "░" * 2), (90.0, "%", "█" * 18), (120.0, "%", "█" * 20), (9.0, "s", "")],
)
def test_a_bar_is_pale_up_to_what_the_figure_must_reach(value, unit, bar):
    ledger = Ledger({"networks/one": replace(ROW, name="one", value=value, unit=unit, must=80.0)})
    new = written("<!-- figures\nnetworks/one\ncolumns:  = bar\n-->\n<!-- /figures -->\n", ledger)
    assert f"| {bar} |" in new


def test_a_table():
    patterns = "kernels/w* = example\nkernels/*\nkernels/gone = what is gone"
    columns = "columns: cycles = *.cycles | why = explanation"
    new = written(f"<!-- figures\n{patterns}\n{columns}\n-->\nold\n<!-- /figures -->\n", LEDGER)
    assert new.splitlines()[7:] == [
        "| figure | measured | must | aim | cycles | why | commit |",
        "|---|---:|---:|---:|---|---|---|",
        "| example | **3 of 4** | ≥ 95 | 98 |  | two cycles | `0123456` |",
        "| `lookup_p99` | 1.08 µs | ≤ 2 | 0.5 | 1,234,567 | two cycles | `0123456`+ |",
        "| `lost` | not available | ≥ 95 | 98 |  | two cycles | `0123456` |",
        "| what is gone | not recorded |  |  |  |  |  |",
        "",
        "Recorded by `caesura bench kernels --record` (`base`, `native`). Times are those of 2 × Fast.",
        "",
        "<!-- /figures -->",
    ]
    assert written(new, LEDGER) == new


def test_a_number_in_text():
    text = "takes <!-- figure kernels/lookup_p99 -->1 s<!-- / -->, or <!-- figure kernels/gone --><!-- / -->"
    told = text.replace("1 s", "1.08 µs").replace("gone -->", "gone -->not recorded")
    assert written(text, LEDGER) == told


def test_examples_of_markers_stay():
    table, number = "<!-- figures\nkernels/*\n-->\n<!-- /figures -->\n", "<!-- figure kernels/lookup_p99 -->"
    text = f"```text\n{table}```\nIn text `{number}` and `<!-- / -->`\n"
    assert written(text, LEDGER) == text and named_figures(text) == []


def test_a_changed_table_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text("<!-- figure kernels/lookup_p99 -->7 s<!-- / -->\n")
    assert pages.main(["--check"]) == 1 and "README.md" in capsys.readouterr().err
    assert pages.main([]) == 0 and "7 s" not in (tmp_path / "README.md").read_text()
    assert pages.main(["--check"]) == 0
