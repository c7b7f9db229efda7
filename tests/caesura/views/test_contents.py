"""Tables for terminals: numbers stay whole where there is little room."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from caesura.views.contents import show_params
from caesura.views.tables import table_of
from caesura.views.terminal import tell
from hw.contract.params import preset


def _lines(renderable, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_numbers_are_never_shortened(width):
    heads = ("layer", "kind", ">MACs", ">cycles", ">utilisation")
    numbers = [("1,253,683,200", "2,938,839", "83.3%"), ("7", "12,345", "0.1%")]
    names = ("a very long name of a region + and another one + more", "[b]short[/b]")
    rows = [(name, "convolution+addition+table+softmax", *row) for name, row in zip(names, numbers, strict=True)]
    printed = _lines(table_of("layers", heads, rows).rich(), width)
    assert all(number in printed for row in numbers for number in row)
    assert max(map(len, printed.splitlines())) <= width
    assert "[b" in printed and "b]" in printed, "a name is no markup"
    assert "…" in printed, "the first column has forty characters at most"


def test_parameters_in_sixty_columns():
    printed = _lines(show_params(preset("base")), 60)
    assert f"{preset('base').dram_bytes:,}" in printed


@pytest.mark.parametrize("width", [40, 80])
def test_many_numbers_make_several_tables_with_names(width):
    heads = ("policy", *(f">{name}" for name in "abcdefghij"))
    numbers = [f"{10**index:,}" for index in range(10)]
    table = table_of("all of them", heads, [("least_memory", *numbers)])
    totals = [{column.key: "all" if at == 0 else "7" for at, column in enumerate(table.columns)}]
    printed = _lines(replace(table, totals=totals).rich(), width)
    lines = printed.splitlines()
    assert max(map(len, lines)) <= width and lines[0].strip() == "all of them" and printed.count("all of them") == 1
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    names, ends = rows[0::2], rows[1::2]
    assert len(names) > 1 and all(row[0].startswith("le") and row[0].endswith("mory") for row in names)
    assert [cell for row in names for cell in row[1:]] == numbers
    assert [row[0] for row in ends] == ["all"] * len(names) and sum(row.count("7") for row in ends) == 10
    assert printed.count("├") == len(names), "the line above totals"


def test_headings_take_several_lines_before_columns_leave():
    heads = ("layer", ">estimated load", ">estimated compute", ">measured load", ">measured compute")
    table = table_of("", heads, [("conv1", "64", "520", "0", "675")])
    assert len(_lines(table.rich(), 90).splitlines()) == 5
    folded = _lines(table.rich(), 64).splitlines()
    assert len(folded) == 6 and max(map(len, folded)) <= 64 and "estimated ┃ estimated" in folded[1]
    assert _lines(table.rich(), 20).count("conv1") == 4, "a column at least"


def test_a_pipe_has_room(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    row = ("a layer of a name with forty characters.", "convolution " * 10, 1_253_683_200)
    tell(table_of("", ("layer", "kind", ">MACs"), [row]).rich())
    printed = capsys.readouterr().out
    assert "forty characters." in printed and ("convolution " * 10).strip() in printed


@pytest.mark.parametrize("width", [80, 60, 100])
def test_no_two_names_look_alike(width):
    """Layers of a transformer differ in the middle of their names, which ends at a cut of old."""
    names = [f"/encoder/layers.{n}/self_attn/{what}/MatMul_quant" for n in range(3) for what in ("scores", "values")]
    heads = (">layer".removeprefix(">"), "kind", ">MACs", ">cycles", ">utilisation")
    rows = [(name, "matmul", 12_345_678, 1_234_567, 0.5) for name in names]
    shown = io.StringIO()
    Console(file=shown, width=width).print(table_of("", heads, rows).rich())
    cells = [row.split("│")[1].strip() for row in shown.getvalue().splitlines() if row.startswith("│")]
    assert len(cells) == len(set(cells)) == len(names) and all("…" in cell for cell in cells)
    assert max(map(len, shown.getvalue().splitlines())) <= width
