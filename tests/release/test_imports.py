"""What a wheel's files import, and that the build leaves no global name but one."""

import ast

import pytest

from release.imports import HOME, ROOMS, RewriteError, rearrange, rewrite
from tests.test_imports import ROOT


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("from hw.contract import isa\n", "from caesura._source.hw.contract import isa\n"),
        ("from sim import sim\n", "from caesura._source.sim import sim\n"),
        ("def f():\n    from sw import (\n        a,\n    )\n",
         "def f():\n    from caesura._source.sw import (\n        a,\n    )\n"),
        ("import hw\n", "from caesura._source import hw\n"),
        ("import hw as h\n", "from caesura._source import hw as h\n"),
        ('A = ("hw.contract.", f"benchmarks.{n}")\n',
         'A = ("caesura._source.hw.contract.", f"caesura._source.benchmarks.{n}")\n'),
        ('"""python -m examples.digits.demo"""\n', '"""python -m caesura._source.examples.digits.demo"""\n'),
    ],
)  # fmt: skip
def test_names_move(source, wanted):
    assert rewrite(source, "file.py") == wanted
    assert rewrite(wanted, "file.py") == wanted, "a second build changes nothing"


@pytest.mark.parametrize(
    "source",
    [
        "from .hw import isa\n",
        "from hwloc import x\n",
        "from caesura.api import hw\n",
        "import simpy\n",
        'SOURCES = ("hw/contract", "sim")\n',
        "hw.contract = 1\n",
    ],
)
def test_other_names_stay(source):
    assert rewrite(source, "file.py") == source


@pytest.mark.parametrize("source", ["import hw.contract\n", "import os, sim\n"])
def test_an_import_without_an_equal_is_refused(source):
    with pytest.raises(RewriteError, match=r"room/file\.py:1: write `import .*` as `from"):
        rewrite(source, "room/file.py")


def test_every_file_of_ours_can_be_moved_and_names_no_global_package_after():
    paths = [path for room in (*ROOMS, "caesura") for path in (ROOT / room).rglob("*.py*") if path.suffix != ".pyc"]
    assert len(paths) > 500
    for path in paths:
        if path.suffix not in (".py", ".pyi"):
            continue
        before = path.read_text()
        moved = rewrite(before, str(path))
        assert moved.count("\n") == before.count("\n")
        for node in ast.walk(ast.parse(moved)):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").split(".")[0] not in ROOMS, path
            elif isinstance(node, ast.Import):
                assert not {alias.name.split(".")[0] for alias in node.names} & set(ROOMS), path


def test_rearranging_leaves_one_package(tmp_path):
    for room in (*ROOMS, "caesura"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("from hw.contract import isa\n")
        (tmp_path / room / "data.txt").write_text("from hw.contract import isa\n")
    rearrange(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["caesura"]
    home = tmp_path.joinpath(*HOME.split("."))
    assert sorted(path.name for path in home.iterdir() if path.is_dir()) == sorted(ROOMS)
    assert (home / "sw" / "__init__.py").read_text() == f"from {HOME}.hw.contract import isa\n"
    assert (home / "sw" / "data.txt").read_text() == "from hw.contract import isa\n"
