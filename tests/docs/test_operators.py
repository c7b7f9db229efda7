"""The page of operators, which is generated, has all that the front end registers, and the reasons it gives."""

import re

from caesura.docgen import operators_page
from compiler.frontend.draft import HANDLERS
from compiler.frontend.operator_forms import OPERATOR_FORMS


def section(heading: str) -> str:
    return operators_page().split(f"\n## {heading}")[1].split("\n## ")[0]


def test_the_table_is_whole():
    """An operator that is missing wants a row in ``compiler/frontend/operator_forms.py``."""
    rows = [line for line in section("What runs").splitlines() if line.startswith("| ")][1:]
    listed = {name for row in rows for name in re.findall(r"\w+", row.split(" | ")[0])}
    assert listed == {name for _, name in HANDLERS}


def test_each_operator_stands_where_it_is_named():
    for row in OPERATOR_FORMS:
        assert row.operators and set(row.only) <= set(row.operators), row


def test_reasons_are_those_of_the_code():
    told = section("What is refused")
    assert "### Any operator" in told and "is computed at run time; it must be a constant" in told
    pools = told.split("### AveragePool")[1].split("###")[0]
    assert "- the indices of the maxima; the accelerator computes the maxima only" in pools


def test_the_rule_of_float_ends_is_there():
    assert "amid the network" in section("What the CPU takes over").lower()
