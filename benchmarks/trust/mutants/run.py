"""All mutants, or some: which campaigns find them, as rows of a report."""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from benchmarks.figures import Row, Target
from benchmarks.trust.campaign import sources
from benchmarks.trust.mutants.all_mutants import MUTANTS
from benchmarks.trust.mutants.hunt import FOUND, SURVIVED, CleanRuns, Verdict, hunt
from benchmarks.trust.mutants.mutant import Mutant
from benchmarks.trust.mutants.survivors import holds, survivors
from caesura import UsageError

MUST = 50  #: of all


def chosen_mutants(only: Sequence[str]) -> list[Mutant]:
    """Those named, also several with commas between them; by default all. Raises :class:`UsageError`."""
    names = [name for text in only for name in text.split(",") if name] or list(MUTANTS)
    for name in names:
        if name not in MUTANTS:
            raise UsageError(f"no mutant named {name!r}; known are {', '.join(MUTANTS)}")
    return [MUTANTS[name] for name in dict.fromkeys(names)]


def run_mutants(
    only: Sequence[str] = (),
    *,
    jobs: int = 2,
    progress_file: Path | None = None,
    told: Callable[[str], None] | None = None,
) -> list[Row]:
    """Hunt mutants, ``jobs`` at a time, those whose hardware must be built first; a row for each, and one for all.
    ``progress_file``: verdicts on these sources that it holds are taken from there, and new ones are written to it."""
    mutants = chosen_mutants(only)
    known = _Known(progress_file)
    left = sorted((m for m in mutants if m.name not in known.verdicts), key=lambda m: not m.is_hardware)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        clean = CleanRuns(Path(folder))
        for name in dict.fromkeys(name for mutant in left for name in mutant.campaigns):
            clean.prepare(name)
        for verdict in pool.map(lambda mutant: hunt(mutant, clean, told), left):
            known.add(verdict)
    return list(_rows(mutants, known.verdicts))


class _Known:
    """Verdicts on these sources, in a file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, Lock()
        self.verdicts: dict[str, Verdict] = {}
        try:
            if path is not None and path.exists():
                held = json.loads(path.read_text())
                if held["sources"] == sources():
                    self.verdicts = {name: Verdict(**fields) for name, fields in held["mutants"].items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UsageError(f"{path}: holds no progress of mutants; name another file") from None

    def add(self, verdict: Verdict) -> None:
        with self._lock:
            self.verdicts[verdict.mutant] = verdict
            if self._path is not None:
                told = {name: asdict(one) for name, one in self.verdicts.items()}
                self._path.write_text(json.dumps({"sources": sources(), "mutants": told}, indent=1))


def _rows(mutants: Sequence[Mutant], verdicts: dict[str, Verdict]) -> Iterator[Row]:
    excused = survivors()
    found = 0
    for mutant in mutants:
        verdict = verdicts[mutant.name]
        found += verdict.fate == FOUND
        said = f"{mutant.what}: "
        said += f"{verdict.campaign}, round {verdict.number}: " if verdict.fate == FOUND else f"{verdict.fate}: "
        detail = asdict(verdict) | {"file": mutant.file, "promise": mutant.promise, "explanation": said + verdict.why}
        entry = excused.get(mutant.name)
        equivalent = verdict.fate == SURVIVED and entry is not None and holds(mutant, entry)
        if equivalent and entry is not None:
            detail["explanation"] = f"{mutant.what}: equivalent: {entry.reason}"
        yield Row(
            mutant.name, float(verdict.fate == FOUND), Target(1, 1, "found"), True, detail, skipped=equivalent
        )  # fmt: skip
    must = min(MUST, len(mutants))
    seconds = sum(verdicts[mutant.name].seconds for mutant in mutants)
    detail = {"explanation": f"of {len(mutants)}, in {seconds:.0f} s of campaigns"}
    yield Row("mutants found", float(found), Target(must, len(mutants), "mutants"), True, detail)
