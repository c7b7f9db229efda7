"""Compilers as they are found, and what is said when they fail."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from sim.cache_folder import cache_dir
from sim.toolchain.compilers import CC, CXX, BuildError, Source, compile_all, link


def test_the_cache_follows_the_xdg_convention(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "caesura"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "caesura"


@pytest.mark.parametrize("compiler", [CC, CXX])
def test_a_compiler_can_be_chosen(compiler, monkeypatch):
    assert compiler.command[1:4] == ("-m", "ziglang", compiler.language)
    usual = compiler.version
    monkeypatch.setenv(compiler.variable, "my-compiler -m 'a b'")
    assert compiler.command == ("my-compiler", "-m", "a b")
    assert compiler.version != usual


def test_a_compiler_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv(CC.variable, "no-such-compiler -x")
    with pytest.raises(BuildError, match=r"could not be started \(no-such-compiler: No such file"):
        compile_all(CC, [Source(tmp_path / "a.c")], (), tmp_path, tmp_path / "log")


def test_a_compiler_that_fails_leaves_its_log(tmp_path):
    (tmp_path / "a.c").write_text("#error no such luck\n")
    with pytest.raises(BuildError, match=r"exit code 1: .*no such luck \(log: .*log\)"):
        compile_all(CC, [Source(tmp_path / "a.c")], (), tmp_path, tmp_path / "log")
    assert "-c -o a.o" in (tmp_path / "log").read_text()


def test_c_needs_no_library_to_be_built(tmp_path, monkeypatch):
    """With a standard library zig would first build that, for longer than everything else takes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "a.c").write_text("#include <stdlib.h>\nint twice(int x) { free(malloc(x)); return 2 * x; }\n")
    log = tmp_path / "log"
    objects = compile_all(CC, [Source(tmp_path / "a.c", ("-fPIC",))], ("-O2",), tmp_path, log)
    assert ctypes.CDLL(str(link(CC, objects, ("-nostdlib",), tmp_path, log))).twice(21) == 42
    assert not list(cache_dir().rglob("*.a"))


def test_what_compiles_needs_no_hdl():
    """The compiler of models has walks in C, and loads no Amaranth for them."""
    code = "import sys, sim.cost.c_walks as c; c.c_walk('walk'); sys.exit('amaranth' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3]).returncode == 0
