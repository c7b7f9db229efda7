"""The table of operators names what the front end registers, no less and no more."""

import re

from compiler.frontend import import_model
from compiler.frontend.draft import HANDLERS
from tests.test_imports import ROOT


def test_the_table_is_whole():
    assert import_model  # registers them all
    rows = [line for line in (ROOT / "docs" / "operators.md").read_text().splitlines() if line.startswith("| ")][1:]
    listed = {name for row in rows for name in re.findall(r"\w+", row.split(" | ")[0])}
    assert listed == {name for _, name in HANDLERS}
