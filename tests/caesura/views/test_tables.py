"""A table has the same rows in each of its forms, and each form has its own manners."""

import csv
import io
import json
import re

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from caesura.views.tables import Column, ColumnTable, not_zero, percent, shown, table_of

COLUMNS = (
    Column("name", "layer", csv="layer"),
    Column("macs", "MACs", number=True, text=not_zero),
    Column("bytes_moved", unit="KiB", number=True),
    Column("engines"),
    Column("share", number=True, text=percent),
    Column("verdict", style=lambda verdict: "green" if verdict == "ok" else ""),
)
ROWS = [
    {"name": "first", "macs": 1_234_567, "bytes_moved": 8, "engines": [0, 1], "share": 0.5, "verdict": "ok"},
    {"name": "second", "macs": 0, "bytes_moved": None, "engines": [], "share": None, "verdict": "bad"},
]
TOTAL = {"name": "all", "macs": 1_234_567, "bytes_moved": 8, "engines": [0, 1], "share": 0.25, "verdict": ""}
TABLE = ColumnTable("a title", COLUMNS, ROWS, [TOTAL])


def printed(table: ColumnTable, **more: object) -> str:
    console = Console(file=io.StringIO(), width=200, **more)
    console.print(table.rich())
    return console.file.getvalue()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]


def test_people_read_titles_units_and_separators():
    lines = printed(TABLE).splitlines()
    assert lines[0].strip() == "a title"
    assert cells(lines[2]) == ["layer", "MACs", "bytes moved, KiB", "engines", "share", "verdict"]
    assert cells(lines[4]) == ["first", "1,234,567", "8", "0, 1", "50.0%", "ok"]
    assert cells(lines[5]) == ["second", "", "", "", "", "bad"]
    assert lines[6].startswith("├") and cells(lines[7])[0] == "all"
    assert "\x1b[32mok" in printed(TABLE, force_terminal=True)


def test_a_page_has_what_a_terminal_has():
    found = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", TABLE.html())
    lines = printed(TABLE).splitlines()
    assert found == [cell for line in (lines[2], lines[4], lines[5], lines[7]) for cell in cells(line)]


def test_programs_read_keys_and_values():
    assert TABLE.fields() == ROWS
    found = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert list(found[0]) == ["layer", "macs", "bytes_moved", "engines", "share", "verdict"]
    assert found[0]["engines"] == "0 1" and found[0]["macs"] == "1234567" and found[1]["bytes_moved"] == ""


def test_columns_are_chosen_by_key():
    assert [column.key for column in TABLE.only("share", "name", "absent").columns] == ["share", "name"]
    assert TABLE.without("engines", "macs").fields()[1] == {
        "name": "second", "bytes_moved": None, "share": None, "verdict": "bad"
    }  # fmt: skip
    assert cells(printed(TABLE.only("share")).splitlines()[2]) == ["share"]


def test_a_cut_column_has_one_line():
    long = "a name that is much longer than there is room for " * 3
    columns = Column("model", cut=True), Column("cycles", number=True)
    console = Console(file=io.StringIO(), width=60)
    console.print(ColumnTable("", columns, [{"model": long, "cycles": 12_345_678}]).rich())
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 5 and "…" in lines[3] and "12,345,678" in lines[3]


def test_a_table_without_rows():
    empty = ColumnTable("", COLUMNS, [])
    assert empty.fields() == [] and "layer" in printed(empty) and "<tbody></tbody>" in empty.html()


def test_pairs():
    pairs = table_of("", ("name", ">"), [("MACs", 1000)], [("all", 2000)])
    assert pairs.fields() == [{"0": "MACs", "1": 1000}] and [column.number for column in pairs.columns] == [False, True]
    assert [cells(line) for line in printed(pairs).splitlines() if "00" in line] == [
        ["MACs", "1,000"],
        ["all", "2,000"],
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "yes"), (1234, "1,234"), (0.5, "0.500"), (12345.6, "12,346"), ("a", "a"), ((1, "b"), "1, b")],
)
def test_values_for_people(value, text):
    assert shown(value) == text


@given(st.text())
def test_text_is_text_in_every_form(text):
    table = ColumnTable(text, [Column("a")], [{"a": text}])
    page = table.html()
    assert all(char.isprintable() for char in page + printed(table).replace("\n", ""))
    assert re.fullmatch(r'(</?(table|thead|tbody|tr|th|td)( title="[^"<>]*")?>|[^<>])*', page)
    assert json.loads(json.dumps(table.fields())) == [{"a": text}]
    assert next(csv.DictReader(io.StringIO(table.csv())))["a"].isprintable()
