"""What is recorded: every bench on the hardware and backend of its published figures, rows of ``--all`` included."""

import fnmatch
import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures import Figure


@dataclass(frozen=True)
class PlannedBench:
    """A bench as it is recorded. Its rows are recorded as ``NAME/ROW``.

    ``without``: patterns of rows that are not recorded; ``everything``: whether rows of ``--all`` are; ``timed``:
    patterns of rows that depend on the machine, since they count seconds or memory of this computer.
    """

    name: str
    bench: str
    preset: str
    backend: str = "native"
    module: str = ""  #: of the package ``benchmarks``, that has the rows; by default the one named like the bench
    everything: bool = True
    without: tuple[str, ...] = ()
    timed: tuple[str, ...] = ()

    def figures(self) -> list[Figure]:
        """Return all rows that are recorded, in the order of the report."""
        rows: list[Figure] = importlib.import_module(f"benchmarks.{self.module or self.bench}").figures()
        wanted = [row for row in rows if self.everything or not row.optional]
        return [row for row in wanted if not _any(row.name, self.without)]

    def is_timed(self, row: str) -> bool:
        """Return whether a row depends on the machine."""
        return _any(row, self.timed)


#: In the order in which they are recorded: what takes longest comes last.
PLAN = (
    PlannedBench("attention", "attention", "base"),
    PlannedBench("utilisation", "utilisation", "base"),
    PlannedBench("language", "language", "base", timed=("token_seconds_*",)),
    PlannedBench("preemption", "preemption", "base"),
    PlannedBench("accuracy-tiny", "accuracy", "tiny", everything=False, without=("random_*",)),
    PlannedBench("kernels", "kernels", "base", timed=("lookup_*", "range_kernel_build")),
    PlannedBench("modelspeed", "modelspeed", "base", "model", timed=("*",)),
    PlannedBench("scheduling", "scheduling", "base", timed=("decision_*", "placement_*", "requests_at_once")),
    PlannedBench("tenants", "tenants", "base"),
    PlannedBench("loads", "loads", "base", without=("whole_*",)),
    PlannedBench("simspeed", "simspeed", "base", timed=("*",)),
    PlannedBench("trust", "trust", "trust", module="trust.plain_runs"),
    PlannedBench("accuracy", "accuracy", "base"),
    PlannedBench("order", "order", "base"),
    PlannedBench("memory", "memory", "base", "model", timed=("order_seconds",)),
    # What starts Python where it cannot be watched, in a venv of its own say, cannot be recorded.
    PlannedBench("everyday", "everyday", "base", without=("docs_blocks", "wheel"), timed=("demo_silence", "whatif_*")),
    PlannedBench("networks", "networks", "base", "model", timed=("slowest_compile",)),
)


def planned(bench: str) -> list[PlannedBench]:
    """Return all that is recorded of a bench; of ``all``, everything."""
    return [one for one in PLAN if bench in ("all", one.bench)]


def _any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
