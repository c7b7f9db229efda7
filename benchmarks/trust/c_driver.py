"""The driver in C under hostile files: it dies of nothing, and reaches nothing but the memory of the file's model."""

import functools
import random
import resource
import shutil
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trust.flat_edges import edges
from benchmarks.trust.flat_files import changed, real_files
from benchmarks.trust.flat_rules import verdict
from examples.c_driver.build import HEADER_FOLDER, HERE
from hw.image import HEADER
from sim.toolchain import CC, BuildError, run_tool

_ERRORS = ("ok", "no device", "refused", "other hardware", "no memory", "faulted", "timed out", "bad argument")
_PLAIN = ("-std=c99", "-O1", "-g", f"-I{HEADER_FOLDER}")
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_TRAPS = ("-fsanitize=undefined", "-fsanitize-trap=undefined")
EDGES = 9  #: of a round, beside a flaw at random
GUARDED = "traps and guard pages"
_HARNESS = Path(__file__).with_name("flat_harness.c")


@dataclass(frozen=True)
class HarnessBuild:
    """The harness with the driver in it. ``means``: what would see a fault of the driver."""

    means: str
    program: Path


@functools.cache
def guarded_build(sources: Path = HERE) -> HarnessBuild:
    """By the compiler that comes with the project: undefined behaviour traps, and arrays end where memory ends."""
    compiler = tuple(word for word in CC.command if word != "-fno-sanitize=all")  # which would win
    return HarnessBuild(GUARDED, _built(compiler, _TRAPS, sources))


@functools.cache
def sanitized_build(sources: Path = HERE) -> HarnessBuild | None:
    """By a compiler of the system that has AddressSanitizer; None where there is none."""
    for name in ("clang", "gcc"):
        if shutil.which(name):
            try:
                program = _built((name,), _SANITIZERS, sources)
            except BuildError:  # without the libraries of its sanitizers
                continue
            return HarnessBuild(f"AddressSanitizer and UndefinedBehaviorSanitizer of {name}", program)
    return None


def builds() -> list[HarnessBuild]:
    """All that can be had here."""
    return [build for build in (guarded_build(), sanitized_build()) if build is not None]


_folders: list[tempfile.TemporaryDirectory] = []  #: of programs, for as long as this process lives


def _built(compiler: tuple[str, ...], flags: tuple[str, ...], sources: Path) -> Path:
    _folders.append(tempfile.TemporaryDirectory())
    work = Path(_folders[-1].name)
    files = map(str, [_HARNESS, *sorted(sources.glob("*.c"))])
    command = [*compiler, *_PLAIN, f"-I{sources}", *flags, "-o", "harness", *files]
    run_tool(f"the compiler ({compiler[0]})", command, work, work / "build.log")
    return work / "harness"


@dataclass(frozen=True)
class FlatOutcome:
    """What became of a file: errors of the driver in words, ``run`` and ``again`` empty where there was none.
    ``problem``: why it was refused."""

    load: str
    run: str
    again: str
    problem: str


class HarnessProcess:
    """A process that loads and runs files; the first has to be a real one, which is run again behind each failure."""

    def __init__(self, build: HarnessBuild) -> None:
        self.means = build.means
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [build.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, preexec_fn=_all_memory
        )

    def run(self, file: bytes, params: int) -> FlatOutcome:
        """Raises ``AssertionError`` if the driver did what it must not do, or died of it."""
        sent, heard = self._process.stdin, self._process.stdout
        assert sent is not None and heard is not None
        try:
            sent.write(struct.pack("<II", params, len(file)) + file)
            sent.flush()
            line = heard.readline().decode().rstrip("\n")
        except BrokenPipeError:
            line = ""
        assert line, f"the driver died: {self._last_words()} ({self.means})"
        assert not line.startswith("!"), f"{line[1:]} ({self.means})"
        load, run, again, problem = line.split(" ", 3)
        load, run, again = ("" if number == "-1" else _ERRORS[int(number)] for number in (load, run, again))
        return FlatOutcome(load, run, again, problem)

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").splitlines()
        return next((line for line in words if "ERROR" in line or "runtime error" in line), f"exit code {code}")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()


def _all_memory() -> None:
    """AddressSanitizer reserves more addresses than a campaign may use; the process itself uses little."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


class CDriverCampaign:
    """A round gives a file with a flaw, and some with a number at its edge, to every build of the driver: those ``of``
    somebody, or all of this one.
    ``backend`` means nothing: no simulator takes part."""

    def __init__(self, backend: str = "", of: Sequence[HarnessBuild] | None = None) -> None:
        self.reached: Counter[str] = Counter()
        self._drivers = [HarnessProcess(build) for build in (builds() if of is None else of)]
        for driver in self._drivers:
            for file in real_files():
                answer = driver.run(file, _params(file))
                assert (answer.load, answer.run) == ("ok", "ok"), f"a real file: {answer}"

    def round(self, seed: int) -> str:
        """See ``TrustCampaign``."""
        rng = random.Random(seed)
        file = rng.choice(real_files())
        told = self._try(*changed(rng, file), _params(file))
        for what, bad in rng.sample(edges(file), EDGES):
            self._try(what, bad, _params(file))
        return told

    def _try(self, what: str, bad: bytes, params: int) -> str:
        """What became of a file in which ``what`` is wrong."""
        answers = {driver.means: driver.run(bad, params) for driver in self._drivers}
        first, wanted = next(iter(answers.values())), verdict(bad, params)
        assert len(set(answers.values())) == 1, f"{what}: builds do not agree: {answers}"
        assert first.load == wanted, f"{what}: the load must end with {wanted!r}, not {first.load!r} {first.problem}"
        assert not first.again or first.again == "ok", (
            f"{what}: behind a file that {first.run}, a real one {first.again}"
        )
        outcome = f"run {first.run}" if first.run else first.load
        self.reached.update([f"{outcome} {first.problem}".rstrip(), *answers])
        return f"{what}: {outcome}"

    def close(self) -> None:
        """See ``TrustCampaign``."""
        for driver in self._drivers:
            driver.close()


def _params(file: bytes) -> int:
    return HEADER.unpack(file[: HEADER.size])["params"]
