"""Which files a watched process is seen to execute and read."""

import os
import subprocess
import sys

import pytest

from benchmarks.ledger.file_digests import ROOT
from benchmarks.ledger.startup.sitecustomize import COPY, LOG, ROOTS, UNSEEN


@pytest.fixture
def seen(tmp_path):
    """What a program in a folder with a few files is seen to use, by name."""
    project = tmp_path / "project"
    project.mkdir()
    for name in ("first", "second", "third"):
        (project / f"{name}.py").write_text("value = 1\n")
    (project / "data.toml").write_text("a = 1\n")
    (project / "model.onnx").write_bytes(b"model")
    log = tmp_path / "log"

    def run(program):
        log.write_text("")
        startup = ROOT / "benchmarks" / "ledger" / "startup"
        variables = {**os.environ, LOG: str(log), ROOTS: str(project), "PYTHONPATH": f"{startup}:{project}"}
        subprocess.run([sys.executable, "-c", program], cwd=project, env=variables, check=True)
        return sorted({line.removeprefix(f"{project}/") for line in log.read_text().splitlines()})

    return run


def test_modules_and_data(seen):
    program = "import first; open('data.toml').read(); import pathlib; pathlib.Path('model.onnx').read_bytes()"
    assert seen(program) == ["data.toml", "first.py", "model.onnx"]
    assert seen(program) == ["data.toml", "first.py", "model.onnx"]  # from the cache of bytecode


def test_processes_that_it_starts(seen):
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import second'], check=True)"
    forked = "import os\nif not os.fork():\n    import third\n    os._exit(0)\nos.wait()"
    assert seen(f"{child}\n{forked}") == ["second.py", "third.py"]


def test_files_of_a_copy_are_the_originals(seen, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "fourth.py").write_text("value = 2\n")
    child = (
        "import os, subprocess, sys; own = os.environ[%r]; roots = {%r: os.pathsep.join([own, %r + own])};"
        "subprocess.run([sys.executable, '-c', 'import fourth'], cwd=%r, check=True, env={**os.environ, **roots})"
    )
    assert seen(child % (ROOTS, ROOTS, f"{copy}{COPY}", str(copy))) == ["fourth.py"]


def test_what_is_written_or_read_as_text_does_not_count(seen):
    assert seen("open('out.txt', 'w').write('1'); open('first.py').read()") == []


def test_a_process_that_may_write_no_file_goes_on(seen):
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); import first; assert first.value"
    assert seen(program) == []


@pytest.mark.parametrize("how", ["[sys.executable, '-c', 'import first'], env={}", "[sys.executable, '-Ic', '1']"])
def test_processes_that_are_not_watched_are_told(seen, how):
    (line,) = seen(f"import subprocess, sys; subprocess.run({how})")
    assert line.startswith(UNSEEN) and sys.executable in line


def test_other_programs_need_not_be_watched(seen):
    assert seen("import subprocess; subprocess.run(['true'], env={'PATH': '/usr/bin:/bin'})") == []
