"""The file of recorded figures: what is written is read back, and a damaged one is refused."""

import json
from dataclasses import replace

import pytest

from benchmarks.ledger.file_digests import FileDigest
from benchmarks.ledger.ledger import Ledger, RecordedFigure, updated
from caesura import UsageError

FILES = tuple(FileDigest(f"hw/{name}.py", name * 16, "0" * 16) for name in "abcde")
ROW = RecordedFigure(
    bench="small", name="gemm", value=99.5, unit="%", must=95, aim=98, at_most=False, ok=True, skipped=False,
    explanation="two cycles", preset="tiny", backend="model", commit="0123456789", dirty=False, place=0, seconds=1.5,
    detail={"cycles": 12}, files=FILES[:3],
)  # fmt: skip
ROWS = {
    "small/gemm": ROW,
    "small/speed": replace(ROW, name="speed", machine={"cores": 2, "cpu": "x"}, files=(FILES[0], FILES[4])),
    "small/lost": replace(ROW, name="lost", value=None, ok=False, files=()),
}


def test_what_is_written_is_read_back(tmp_path):
    Ledger(ROWS).write(tmp_path / "figures.json")
    assert Ledger.read(tmp_path / "figures.json").rows == ROWS


def test_a_row_a_set_and_a_file_have_a_line_each(tmp_path):
    path = tmp_path / "figures.json"
    Ledger(ROWS).write(path)
    lines = path.read_text().splitlines()
    assert sum('"gemm"' in line for line in lines) == 1
    assert [line for line in lines if "hw/d.py" in line] == []  # of which no row makes use
    assert len(json.loads(path.read_text())["files"]) == 4 and list(tmp_path.iterdir()) == [path]


def test_one_file_in_two_versions(tmp_path):
    path, other = tmp_path / "figures.json", FileDigest("hw/a.py", "f" * 16, "f" * 16)
    rows = ROWS | {"small/later": replace(ROW, name="later", files=(other, FILES[1]))}
    Ledger(rows).write(path)
    assert Ledger.read(path).rows == rows


def test_an_update_keeps_what_others_wrote(tmp_path):
    path = tmp_path / "figures.json"
    for key, row in ROWS.items():
        with updated(path) as ledger:
            ledger.rows[key] = row
    assert Ledger.read(path).rows == ROWS


def test_an_update_that_fails_writes_nothing(tmp_path):
    path = tmp_path / "figures.json"
    with pytest.raises(RuntimeError), updated(path) as ledger:
        ledger.rows["small/gemm"] = ROW
        raise RuntimeError
    assert not path.exists()


def test_there_need_be_none(tmp_path):
    assert Ledger.read(tmp_path / "figures.json").rows == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": [], "sets": {}, "rows": {"a/b": {"files": "x"}}}'])
def test_damage_is_told(tmp_path, text):
    path = tmp_path / "figures.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"figures\.json: holds no recorded figures"):
        Ledger.read(path)
