"""Breakages of the run time: whose fault it was, who starts over, what is too late."""

from benchmarks.trust.mutants.mutant import Mutant

_RECOVERY, _STORMS = "sw/runtime/recovery.py", ("storms",)

RUNTIME = (
    Mutant(
        "U1", "neighbours of a failed request do not start over", _RECOVERY,
        "while (robbed := self._started.robbed()) is not None:", "while (robbed := None) is not None:",
        "P3", _STORMS,
    ),
    Mutant(
        "U2", "the oldest request is blamed for a fault", _RECOVERY,
        "victim = self._started.owner_of(fault.record.job_id)", "victim = self._started.oldest()",
        "P3", _STORMS,
    ),
    Mutant(
        "U3", "a request is too late a million cycles too late", "sw/runtime/recovery.py",
        "if request.last_cycle < now)]", "if request.last_cycle < now - 1_000_000)]",
        "L", _STORMS,
    ),
    Mutant(
        "U4", "what a failed restore holds starts over as well", _RECOVERY,
        "held = [r for r in self._priorities.running if r.model in suspension.models]", "held = []",
        "P3", ("faults", "storms"),
    ),
    Mutant(
        "U5", "waiting does not end at deadlines", "sw/runtime/request_runner.py",
        "for cycle in (self._waiting.next_arrival(), self._recovery.next_deadline()):",
        "for cycle in (self._waiting.next_arrival(),):",
        "L", ("late",),
    ),
)  # fmt: skip
