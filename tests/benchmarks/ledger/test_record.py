"""Recording a figure, and when it is stale, on the quickest row that runs on the RTL."""

from dataclasses import replace

import pytest

from benchmarks.ledger import record as recording
from benchmarks.ledger.file_digests import MODELS, FileDigest
from benchmarks.ledger.ledger import Ledger
from benchmarks.ledger.plan import PLAN, PlannedBench
from benchmarks.ledger.record import record
from benchmarks.ledger.stale import stale_rows, to_table
from caesura import UsageError
from tests.system.command import caesura_command

KEY = "accuracy-tiny/digits"
NAMES = {"accuracy-tiny": ["digits"]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A ledger in which one row was recorded."""
    path = tmp_path_factory.mktemp("ledger") / "figures.json"
    lines = []
    result = record("all", [KEY], told=lines.append, path=path)
    assert list(result.rows) == [KEY] and not result.failed and not result.left
    assert lines[0].startswith(f"{KEY}: ")
    return path


@pytest.fixture
def altered(recorded, tmp_path):
    """Write the recorded row with other members to a ledger of its own."""

    def alter(key=KEY, **members):
        path = tmp_path / "figures.json"
        Ledger({key: replace(Ledger.read(recorded).rows[KEY], **members)}).write(path)
        return path

    return alter


def test_a_row_says_what_was_measured(recorded):
    row = Ledger.read(recorded).rows[KEY]
    assert (row.bench, row.name, row.preset, row.backend) == ("accuracy", "digits", "tiny", "native")
    assert row.value < 2 and (row.unit, row.must, row.at_most, row.ok) == ("%", 2, True, True)
    assert len(row.commit) == 10 and row.machine is None and row.detail["rtl"] > 1000


def test_a_row_depends_on_what_it_ran(recorded):
    """The hardware included, although its simulator came from the cache."""
    files = {one.path for one in Ledger.read(recorded).rows[KEY].files}
    assert files >= {
        "hw/soc.py", "hw/mac/array.py", "hw/contract/isa.py", "sim/rtl/native/runtime.c", "sim/rtl/native/lower.py",
        "sim/model/bus.py", "sw/driver/__init__.py", "compiler/compile.py", "benchmarks/accuracy.py",
        "examples/digits/digits.onnx", "sw/driver/__init__.pyi:Device",
    }  # fmt: skip
    assert not {
        file for file in files if file.startswith(("docs/", "tests/", "caesura/views/charts", "benchmarks/ledger/"))
    }
    assert not {file for file in files if file.endswith(("figures.json", ".pyc", ".pyi"))}


def test_what_holds_is_not_stale(recorded):
    assert stale_rows(NAMES, path=recorded) == []
    lines = []
    assert not record("all", [KEY], told=lines.append, path=recorded).rows
    assert lines == ["nothing to measure: all these figures hold"]


def test_a_changed_file_makes_a_row_stale(altered, recorded):
    files = Ledger.read(recorded).rows[KEY].files
    changed = tuple(one._replace(content="0", code="0") if one.path == "hw/soc.py" else one for one in files)
    (row,) = stale_rows(NAMES, path=altered(files=changed))
    assert (row.key, row.files) == (KEY, ("hw/soc.py",))
    assert "accuracy-tiny" in " ".join(map(str, to_table([row]).renderables[0].columns[0]._cells))


def test_other_reasons(altered, tmp_path):
    assert [row.why for row in stale_rows(NAMES, path=tmp_path / "none.json")] == ["never recorded"]
    (row,) = stale_rows(NAMES, path=altered(preset="base"))
    assert row.why == "recorded on base (native), now measured on tiny (native)"
    gone = altered("accuracy-tiny/digits_2")
    assert {(row.key, row.why) for row in stale_rows(NAMES, path=gone)} == {
        (KEY, "never recorded"), ("accuracy-tiny/digits_2", "no longer exists"),
    }  # fmt: skip


def test_what_is_gone_is_taken_out(altered):
    path, lines = altered("accuracy-tiny/digits_2"), []
    assert not record("all", [KEY], seconds=0, told=lines.append, path=path).rows
    assert Ledger.read(path).rows  # of which nobody asked
    record("all", seconds=0, told=lines.append, path=path)
    assert not Ledger.read(path).rows and lines == ["accuracy-tiny/digits_2: no longer exists, and was taken out"]


def test_rows_of_models_that_are_not_here_hold(altered, monkeypatch):
    model = FileDigest(f"{MODELS}kws.onnx", "0", "")
    path = altered("accuracy-tiny/kws", files=(model,))
    monkeypatch.delenv("CAESURA_MODELS", raising=False)
    assert [row.key for row in stale_rows(NAMES, path=path)] == [KEY]
    monkeypatch.setenv("CAESURA_MODELS", str(path.parent))
    (path.parent / "kws.onnx").write_bytes(b"")
    assert [row.why for row in stale_rows(NAMES, path=path)] == ["never recorded", "no longer exists"]


def test_no_row_begins_when_the_time_is_over(tmp_path):
    result = record("all", ["accuracy-tiny/*_small"], seconds=0, path=tmp_path / "figures.json")
    assert not result.rows and len(result.left) == 3 and result.ok


def test_a_process_that_fails_leaves_no_figure(tmp_path, monkeypatch, capfd):
    entry = PlannedBench("unknown", "order", "base", without=("[!w]*",))  # the process does not find it in the plan
    monkeypatch.setattr(recording, "planned", lambda bench: [entry])
    result = record("order", path=tmp_path / "figures.json")
    assert not result.rows and not result.ok and not (tmp_path / "figures.json").exists()
    assert result.failed == {"unknown/worked_examples": "the process that measured it ended with status 1"}
    assert "StopIteration" in capfd.readouterr().err


def test_a_file_that_changes_meanwhile_leaves_no_figure(tmp_path, monkeypatch):
    digests = iter([{"benchmarks/order.py": "1"}, {"benchmarks/order.py": "2"}])
    monkeypatch.setattr(recording, "content_digests", lambda paths: next(digests))
    monkeypatch.setattr(recording, "project_files", lambda: {"benchmarks/order.py"})
    result = record("order", ["worked_examples"], path=tmp_path / "figures.json")
    assert result.failed == {"order/worked_examples": "benchmarks/order.py changed while it was measured"}


def test_every_bench_is_recorded():
    from benchmarks import BENCHES

    assert {entry.bench for entry in PLAN} == {*BENCHES, "trust"}
    for entry in PLAN:
        names = [figure.name for figure in entry.figures()]
        assert names and len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["all"], "all benchmarks together are only recorded: caesura bench all --record"),
        (["kernels", "--record", "--preset", "tiny"], "--record takes only --only and --budget"),
        (["speed", "--record"], "no benchmark named 'speed'; recorded are attention, utilisation"),
        (["all", "--record", "--only", "watts"], "no figure of all matches 'watts'; patterns are such as"),
    ],
)
def test_user_errors(arguments, message):
    code, out, err = caesura_command("bench", *arguments)
    assert code == 2 and not out
    assert message in " ".join(err.split())


def test_patterns_are_checked():
    with pytest.raises(UsageError, match="no figure of attention matches 'gemm'"):
        record("attention", ["gemm"])
