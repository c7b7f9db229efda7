"""Campaigns: rounds that follow from seeds, what they reached, and how far a campaign has come."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from caesura import UsageError
from sim import sources_digest

KEPT = 20  #: failures that a campaign remembers, after which it ends

#: What a failure is: a check of the campaign said no, a round never ended, the process died or ran out of memory, or
#: something else was raised. Only the first two say that the product was caught.
CHECK, STUCK, DIED, ERROR = "check", "stuck", "died", "error"


class TrustCampaign(Protocol):
    """Rounds that follow from their seeds alone: each begins at a checkpoint that the rounds before cannot have
    touched, so that a seed shows a failure again. Whatever has to be built is built by the constructor, off the clock.

    ``reached`` counts what rounds got to, seen from outside (bus, spies), by name; whoever runs the rounds empties it.
    """

    reached: Counter[str]

    def round(self, seed: int) -> str:
        """Run one; returns what it was, for the counts. A check that fails raises ``AssertionError``, with a message
        that says what is wrong. After any exception the campaign is closed and made anew."""

    def close(self) -> None:
        """Free what it holds."""


def round_seed(name: str, number: int) -> int:
    """The seed of round ``number`` of campaign ``name``: neighbours have nothing in common."""
    return int.from_bytes(hashlib.sha256(f"{name} {number}".encode()).digest()[:8], "little")


@dataclass(frozen=True)
class Failure:
    """Round ``number`` failed. ``began``: the first round of the device that it happened on, from which to start to
    see it again; it is ``number`` itself where that one round is enough. ``kind``: see :data:`CHECK`."""

    number: int
    began: int
    kind: str
    message: str


@dataclass
class Tally:
    """How a campaign went. ``first``: number of its first round; ``seconds``: of rounds, not of what had to be built;
    ``broken``: why rounds could not begin at all."""

    first: int
    ran: int = 0
    failed: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    broken: str = ""

    def fail(self, failure: Failure) -> None:
        """Note a failure, of which the first few are kept."""
        self.failed += 1
        if len(self.failures) < KEPT:
            self.failures.append(failure)

    def to_fields(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "first": self.first, "ran": self.ran, "failed": self.failed, "seconds": round(self.seconds, 1),
            "kinds": dict(self.kinds), "reached": dict(self.reached),
            "failures": [vars(failure) for failure in self.failures],
        }  # fmt: skip

    @classmethod
    def from_fields(cls, told: dict[str, Any]) -> "Tally":
        """The inverse of :meth:`to_fields`."""
        failures = [Failure(**fields) for fields in told["failures"]]
        numbers = told["first"], told["ran"], told["failed"], told["seconds"]
        return cls(*numbers, Counter(told["kinds"]), Counter(told["reached"]), failures)


#: Digest of what campaigns run: rounds that ran on other sources say nothing of these.
sources = partial(sources_digest, "hw", "sim", "sw", "compiler", "caesura", "examples", "benchmarks/trust")


class ProgressFile:
    """Tallies by campaign and first round of these sources, in a JSON file that is replaced as a whole; those of other
    sources are forgotten. Raises :class:`UsageError` for a file that holds something else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: dict[str, dict[str, Any]] = {}
        try:
            if path.exists():
                held = json.loads(path.read_text())
                for told in held["campaigns"].values():
                    Tally.from_fields(told)
                if held["sources"] == sources():
                    self._told = held["campaigns"]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UsageError(f"{path}: holds no progress of campaigns; name another file") from None

    def tally(self, name: str, first: int) -> Tally:
        """How far campaign ``name`` from round ``first`` has come."""
        told = self._told.get(f"{name} {first}")
        return Tally(first) if told is None else Tally.from_fields(told)

    def save(self, name: str, tally: Tally) -> None:
        """Write it down."""
        self._told[f"{name} {tally.first}"] = tally.to_fields()
        new = self._path.with_name(self._path.name + ".new")
        new.write_text(json.dumps({"sources": sources(), "campaigns": self._told}, indent=1))
        new.replace(self._path)
