"""Figures in README and docs: tables and numbers between markers, written from the ledger.

    python -m benchmarks.ledger.pages            write them, as ``caesura bench ... --record`` does at its end
    python -m benchmarks.ledger.pages --check    exit with 1 if a page does not show what the ledger says

A table stands behind ``<!-- figures``, a line for each pattern of ``NAME/ROW`` (with ``= LABEL`` behind it where the
row's own name would say little; a later pattern means the rest), and ``-->``, up to ``<!-- /figures -->``. A line
``columns: TITLE = MEMBER | ...`` adds columns, of ``explanation`` or of the details by name (``cycles``; ``*.cycles``,
where ``*`` is the only table); ``bar`` draws a value in percent. In text, ``<!-- figure NAME/ROW -->`` and
``<!-- / -->`` have the value between them.
"""

import argparse
import fnmatch
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.ledger.file_digests import ROOT
from benchmarks.ledger.ledger import Ledger, RecordedFigure
from benchmarks.ledger.plan import PLAN

BLOCK = re.compile(r"(<!-- figures\s(.*?)-->\n)(.*?)(<!-- /figures -->)", re.DOTALL)
INLINE = re.compile(r"(?<!`)(<!-- figure (\S+) -->)(.*?)(<!-- / -->)", re.DOTALL)
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)  #: text as it is, such as an example of a marker
NOT_RECORDED = "not recorded"
_COLUMNS = "columns:"
_BAR, _BLOCKS = "bar", 20
_SHOWN_DIGITS = 7  #: of a commit
_UNITS = {"us": "µs"}


def pages() -> list[Path]:
    """Return all pages that may show figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


def written(text: str, ledger: Ledger) -> str:
    """``text`` with what the ledger says between its markers."""

    def filled(part: str) -> str:
        part = BLOCK.sub(lambda found: f"{found[1]}\n{_table(found[2], ledger)}\n{found[4]}", part)
        return INLINE.sub(lambda found: f"{found[1]}{_value(ledger.rows.get(found[2]))}{found[4]}", part)

    return "".join(part if FENCED.fullmatch(part) else filled(part) for part in FENCED.split(text))


def named_figures(text: str) -> list[str]:
    """Return the patterns of all markers in ``text``."""
    text = FENCED.sub("", text)
    found = [pattern for block in BLOCK.finditer(text) for pattern, _ in _patterns(block[2])]
    return found + [one[2] for one in INLINE.finditer(text)]


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages; returns the exit code."""
    parser = argparse.ArgumentParser(description="figures in README and docs, from benchmarks/figures.json")
    parser.add_argument("--check", action="store_true", help="only compare, exit with 1 on a difference")
    check, ledger, other = parser.parse_args(arguments).check, Ledger.read(), []
    for page in pages():
        text = page.read_text()
        if (new := written(text, ledger)) != text:
            other.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(new)
    if other and check:
        print(f"out of date: {', '.join(other)}; run python -m benchmarks.ledger.pages", file=sys.stderr)
    return 1 if other and check else 0


def _patterns(lines: str) -> Iterator[tuple[str, str]]:
    """Yield pattern and label, if it has one, of each row."""
    for line in filter(None, map(str.strip, lines.splitlines())):
        if not line.startswith(_COLUMNS):
            pattern, _, label = line.partition("=")
            yield pattern.strip(), label.strip()


def _columns(lines: str) -> dict[str, str]:
    """Return the titles of more columns, and the member of the figure that each shows."""
    told = [line.strip().removeprefix(_COLUMNS) for line in lines.splitlines() if line.strip().startswith(_COLUMNS)]
    pairs = [column.partition("=") for line in told for column in line.split("|")]
    return {title.strip(): member.strip() for title, _, member in pairs}


def _table(lines: str, ledger: Ledger) -> str:
    more, rows = _columns(lines), dict[str, list[str]]()
    for pattern, label in _patterns(lines):
        for key in [key for key in _in_order(ledger) if fnmatch.fnmatchcase(key, pattern)] or [pattern]:
            name = key if "*" in key else key.partition("/")[2]
            cells = [label or f"`{name}`", *_cells(ledger.rows.get(key), list(more.values()))]
            rows.setdefault(key, cells)  # a later pattern means the rest
    titles = ["figure", "measured", "must", "aim", *more, "commit"]
    ruler = f"|---|---:|---:|---:|{'---|' * len(more)}---|"
    lines_of_table = [_line(titles), ruler, *map(_line, rows.values()), "", _caption(rows, ledger), ""]
    return "\n".join(lines_of_table)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _in_order(ledger: Ledger) -> list[str]:
    """Return the keys in the order in which benches report their rows."""
    benches = [entry.name for entry in PLAN]

    def place(key: str) -> tuple[int, int, str]:
        bench = key.partition("/")[0]
        return benches.index(bench) if bench in benches else len(benches), ledger.rows[key].place, key

    return sorted(ledger.rows, key=place)


def _cells(figure: RecordedFigure | None, members: list[str]) -> list[str]:
    if figure is None:
        return [NOT_RECORDED, "", "", *("" for _ in members), ""]
    sign = "≤" if figure.at_most else "≥"
    limits = [f"{sign} {_number(figure.must)}", _number(figure.aim)]
    commit = f"`{figure.commit[:_SHOWN_DIGITS]}`" + ("+" if figure.dirty else "")
    return [_value(figure), *limits, *(_member(figure, path) for path in members), commit]


def _value(figure: RecordedFigure | None) -> str:
    if figure is None:
        return NOT_RECORDED
    if figure.value is None:
        return "not available" if figure.skipped else "none"
    value = f"{_number(figure.value)} {_UNITS.get(figure.unit, figure.unit)}"
    return value if figure.ok else f"**{value}**"


def _member(figure: RecordedFigure, path: str) -> str:
    if path == _BAR:
        return _bar(figure)
    if path == "explanation":
        return figure.explanation.replace("|", "\\|")
    value: Any = figure.detail
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return ""
        tables = [one for one in value.values() if isinstance(one, Mapping)]
        value = (tables[0] if len(tables) == 1 else None) if name == "*" else value.get(name)
    return "" if value is None else _number(value) if isinstance(value, int | float) else str(value)


def _bar(figure: RecordedFigure) -> str:
    """Return a block for each twentieth of 100 %, pale up to what the figure must reach."""
    if figure.value is None or figure.unit != "%":
        return ""
    filled, must = (min(_BLOCKS, round(value * _BLOCKS / 100)) for value in (figure.value, figure.must))
    return "█" * filled + "░" * (must - filled)


def _number(value: float) -> str:
    """Whole numbers in full, others to three digits or one behind the point."""
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _caption(keys: Iterable[str], ledger: Ledger) -> str:
    """Return what measured the rows, and on which machine where they depend on it."""
    names = {key.partition("/")[0] for key in keys}
    entries = [entry for entry in PLAN if entry.name in names]
    shown = [ledger.rows[key] for key in keys if key in ledger.rows]
    told = [f"`caesura bench {one.bench} --record` (`{one.preset}`, `{one.backend}`)" for one in entries]
    machines = {f"{row.machine['cores']} × {row.machine['cpu']}" for row in shown if row.machine}
    on = f" Times are those of {', '.join(sorted(machines))}." if machines else ""
    return f"Recorded by {' and '.join(told)}.{on}"


if __name__ == "__main__":
    sys.exit(main())
