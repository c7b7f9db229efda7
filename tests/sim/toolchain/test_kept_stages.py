"""What stages keep, and the folders that they work in."""

import os
import subprocess
import sys

import pytest

from sim import cache_folder
from sim.toolchain import KeptStages


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_folder.cache_dir() / "stages"


def test_two_that_make_the_same_at_once_leave_each_other_alone(root):
    """The second begins amid the first, which finds its own file unchanged then."""
    kept = KeptStages("stages")

    def make(folder):
        (folder / "file").write_text("of the first")
        other = "import sys; from sim.toolchain import KeptStages; "
        other += "KeptStages('stages').worked('key', lambda folder: (folder / 'file').write_text('of the second'))"
        subprocess.run([sys.executable, "-c", other], check=True)
        return (folder / "file").read_text()

    assert kept.worked("key", make) == "of the first"
    assert not list(root.glob("work-*"))


def test_what_a_dead_process_has_left_is_removed_and_what_failed_stays(root):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = root / f"work-key-{gone.pid}"
    left.mkdir(parents=True)

    def fail(folder):
        (folder / "log").write_text("why")
        raise ValueError("why")

    with pytest.raises(ValueError, match=r"^why$"):
        KeptStages("stages").worked("key", fail)
    assert not left.exists()
    assert (root / f"work-key-{os.getpid()}" / "log").read_text() == "why"
    KeptStages("stages").worked("key", lambda folder: None)
    assert not list(root.glob("work-*"))
