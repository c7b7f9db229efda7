"""CONTRIBUTING.md says who may import what as ``tests/test_imports.py`` has it, and no other page says it again."""

import re

import pytest

from tests.docs.pages import pages, section, table, text_of
from tests.test_imports import FLOORS

PAGE = "CONTRIBUTING.md"
ROWS = {cells[0].strip("`/"): cells[2] for cells in table(section(PAGE, "## Where things go"))}


@pytest.mark.parametrize("folder", FLOORS)
def test_the_table_says_what_a_folder_may_import(folder):
    wanted = ", ".join(f"`{one}`" for one in sorted(FLOORS[folder])) or "nothing of ours"
    assert ROWS[folder] == wanted


def test_other_folders_have_no_floor():
    assert {folder: said for folder, said in ROWS.items() if folder not in FLOORS} == {
        "examples": "anything",
        "tests": "anything",
        "docs": "",
        "release": "nothing of ours",
    }


def test_it_stands_once():
    header = re.compile(r"^\|.*\bimports?\b.*\|$", re.MULTILINE)
    assert [page for page in pages() if header.search(text_of(page))] == [PAGE]
