"""The notebook of the digits example: its cells run, one after another, and show what stands in it."""

import importlib.util
import json

import pytest

from tests.support.documented import ROOT
from tests.support.notebooks import outputs_of

NOTEBOOK = ROOT / "examples" / "digits" / "digits.ipynb"
WRITE = f"python -m tests.support.notebooks --write {NOTEBOOK.relative_to(ROOT)}"


def cells():
    return json.loads(NOTEBOOK.read_text())["cells"]


def test_it_shows_what_its_cells_give():
    shown = [cell["outputs"] for cell in cells() if cell["cell_type"] == "code"]
    assert outputs_of(NOTEBOOK) == shown, f"the notebook shows other outputs: {WRITE}"


def test_it_is_a_notebook_as_jupyter_reads_it():
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(names) == len(set(names)) > 10 and all(len(name) <= 64 for name in names)
    for cell in notebook["cells"]:
        assert isinstance(cell["metadata"], dict) and isinstance(cell["source"], list)
        assert ("outputs" in cell) == ("execution_count" in cell) == (cell["cell_type"] == "code")


def test_cells_that_need_a_package_run_where_it_is(tmp_path):
    source = {"cell_type": "code", "metadata": {"tags": ["needs json"]}, "source": ["print(1)\n", "2"], "outputs": []}
    other = {**source, "metadata": {"tags": ["needs no_such_package"]}, "source": ["1 / 0"], "outputs": ["kept"]}
    file = tmp_path / "n.ipynb"
    file.write_text(json.dumps({"cells": [source, other, {"cell_type": "markdown", "source": []}]}))
    assert importlib.util.find_spec("no_such_package") is None
    first, second = outputs_of(file)
    assert [one["output_type"] for one in first] == ["stream", "execute_result"] and second == ["kept"]
    file.write_text(json.dumps({"cells": [{**source, "source": ["1 / 0"]}]}))
    with pytest.raises(ZeroDivisionError):
        outputs_of(file)
