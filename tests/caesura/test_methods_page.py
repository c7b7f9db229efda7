"""docs/methods.md: what it points to exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "methods.md").read_text()
FOLDERS = ("hw", "sim", "sw", "compiler", "caesura", "tests", "examples")
REFERENCES = sorted(set(re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./]+(?:::\w+)?)`", PAGE)))


def test_the_page_refers_to_code_and_tests():
    assert sum("::" in reference for reference in REFERENCES) > 40


@pytest.mark.parametrize("reference", REFERENCES)
def test_what_the_page_points_to_exists(reference):
    path, _, test = reference.partition("::")
    assert (ROOT / path).exists()
    if test:
        functions = {
            node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)
        }
        assert test in functions
