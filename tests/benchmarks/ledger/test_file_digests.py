"""When a file counts as changed."""

import pytest

from benchmarks.ledger import file_digests
from benchmarks.ledger.file_digests import MODELS, file_digest, front_digests, front_names, located, named

SOURCE = '''"""About it."""


def twice(x):
    """Two times ``x``."""
    return 2 * x  # why
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of its own, with a module and a table."""
    monkeypatch.setattr(file_digests, "ROOT", tmp_path)
    (tmp_path / "twice.py").write_text(SOURCE)
    (tmp_path / "table.toml").write_text("a = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "holds"),
    [
        ("About it", "About twice", True),
        ("Two times ``x``", "Twice", True),
        ("# why", "# since it is so", True),
        ("2 * x", "(2 * x)", True),
        ("2 * x", "3 * x", False),
        ("2 * x", "x * 2", False),
        ("def twice(x)", "def twice(x=1)", False),
        ("    return", "    return 0\n    return", False),
        ("return", "retrun", False),
    ],
)
def test_python_changes_with_what_it_says(project, old, new, holds):
    before = file_digest("twice.py")
    (project / "twice.py").write_text(SOURCE.replace(old, new))
    assert before.holds is holds


def test_other_files_change_with_every_byte(project):
    before = file_digest("table.toml")
    assert before.holds
    (project / "table.toml").write_text("a = 1 \n")
    assert not before.holds


def test_what_only_says_how_text_looks_may_change(project):
    folder = project / "caesura" / "views"
    folder.mkdir(parents=True)
    for name, holds in (("terminal.py", True), ("tables.py", True), ("progress.py", False)):
        (folder / name).write_text(SOURCE)
        before = file_digest(f"caesura/views/{name}")
        (folder / name).write_text(SOURCE.replace("2 * x", "3 * x"))
        assert before.holds is holds


def test_those_files_are_there():
    assert all(located(path).is_file() for path in file_digests._SHOWN)


def test_a_file_that_is_gone_has_changed(project):
    before = file_digest("table.toml")
    (project / "table.toml").unlink()
    assert not before.holds


def test_models_that_are_not_here_are_no_change(project, tmp_path, monkeypatch):
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("CAESURA_MODELS", str(folder))
    (folder / "kws.onnx").write_bytes(b"1")
    name = MODELS + "kws.onnx"
    before = file_digest(name)
    assert before.holds and named((folder / "elsewhere.onnx").resolve()) is not None
    (folder / "kws.onnx").write_bytes(b"2")
    assert not before.holds
    monkeypatch.delenv("CAESURA_MODELS")
    assert before.holds


def test_files_of_nobody_have_no_name(tmp_path):
    assert named(tmp_path / "elsewhere.py") is None
    assert named(file_digests.ROOT / "hw" / "soc.py") == "hw/soc.py"


STUB = "from .one import a as a, b as b\nfrom .two import c as c\nfrom . import below as below\n"


@pytest.fixture
def front(project):
    """The stub of a front with two modules and a package behind it."""
    room = project / "room"
    (room / "below").mkdir(parents=True)
    for name in ("one.py", "two.py", "below/__init__.py"):
        (room / name).write_text("")
    (room / "__init__.pyi").write_text(STUB)
    return room / "__init__.pyi"


def test_names_of_a_front_are_those_of_modules_that_ran(front):
    found = front_digests("room/__init__.pyi", {"room/one.py", "room/below/__init__.py", "room/__init__.py"})
    assert {(one.path, one.content) for one in found} == {
        ("room/__init__.pyi:a", "room/one.py"), ("room/__init__.pyi:b", "room/one.py"),
        ("room/__init__.pyi:below", "room/below/__init__.py"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("b as b", "b as b, d as d", []),  # it offers more
        ("import c as c", "import c as c, e as e", []),
        (", b as b", "", []),  # and less: who used b has changed
        ("from .one import a as a, b as b", "from .one import a as a\nfrom .two import b as b", ["b"]),
        ("from .one", "from .three", ["a", "b"]),
    ],
)
def test_a_front_changes_where_a_name_leads_elsewhere(front, old, new, changed):
    before = front_digests("room/__init__.pyi", {"room/one.py", "room/two.py"})
    front.write_text(STUB.replace(old, new))
    assert [one.path for one in before if not one.holds] == [f"room/__init__.pyi:{name}" for name in changed]


def test_names_of_the_fronts_lead_to_files():
    names = front_names("sw/driver/__init__.pyi") | front_names("caesura/__init__.pyi")
    assert names["Device"] and all(located(path).is_file() for path in names.values())
