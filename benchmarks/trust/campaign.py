"""Campaigns: rounds from seeds, within a budget of time, that can be taken up where they stopped."""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from caesura.api import UsageError

_KEPT = 20  #: failures of which seed and message are kept
_SAVE_SECONDS = 5.0
BLOCK = 200  #: rounds after which a campaign is made anew: whatever fails is seen again from the block's first seed


class TrustCampaign(Protocol):
    """Rounds that depend on nothing but their seeds and on the state that earlier rounds left behind."""

    def round(self, seed: int) -> str:
        """Run one; returns what it was, for the counts. Any exception is a failure, after which the campaign is closed
        and made anew."""

    def close(self) -> None:
        """Free what it holds."""


@dataclass
class Tally:
    """How a campaign went. ``first``: seed of its first round, round i has ``first`` + i; ``failures``: (seed, seed of
    the first round of the same device, message) of the first few. Who starts at the second sees the failure again."""

    first: int
    ran: int = 0
    failed: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, int, str]] = field(default_factory=list)

    def to_fields(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "first_seed": self.first, "ran": self.ran, "failed": self.failed, "seconds": round(self.seconds, 1),
            "kinds": dict(self.kinds), "failures": self.failures,
        }  # fmt: skip

    @classmethod
    def from_fields(cls, told: dict[str, Any]) -> "Tally":
        """The inverse of :meth:`to_fields`."""
        failures = [(seed, began, message) for seed, began, message in told["failures"]]
        return cls(told["first_seed"], told["ran"], told["failed"], told["seconds"], Counter(told["kinds"]), failures)


class ProgressFile:
    """Tallies by campaign and first seed, in a JSON file that is replaced as a whole. Raises :class:`UsageError` for a
    file that holds something else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: dict[str, dict[str, Any]] = {}
        try:
            if path.exists():
                self._told = json.loads(path.read_text())
                for told in self._told.values():
                    Tally.from_fields(told)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UsageError(f"{path}: holds no progress of campaigns; name another file") from None

    def tally(self, name: str, seed: int) -> Tally:
        """How far campaign ``name`` from ``seed`` has come."""
        told = self._told.get(f"{name} {seed}")
        return Tally(seed) if told is None else Tally.from_fields(told)

    def save(self, name: str, tally: Tally) -> None:
        """Write it down."""
        self._told[f"{name} {tally.first}"] = tally.to_fields()
        new = self._path.with_name(self._path.name + ".new")
        new.write_text(json.dumps(self._told, indent=1))
        new.replace(self._path)


def run_campaign(
    name: str,
    make: Callable[[], TrustCampaign],
    tally: Tally,
    *,
    seconds: float,
    rounds: int | None = None,
    save: Callable[[str, Tally], None] | None = None,
    told: Callable[[str], None] | None = None,
) -> Tally:
    """Go on with ``tally`` for so many seconds, or until it has ``rounds`` rounds; ``save`` is called now and then.
    ``told``: called with a line about how far it is."""
    campaign: TrustCampaign | None = None
    begin = saved = time.monotonic()
    before, began = tally.seconds, tally.first
    try:
        while time.monotonic() - begin < seconds and (rounds is None or tally.ran < rounds):
            seed = tally.first + tally.ran
            if campaign is not None and seed - began >= BLOCK:
                campaign.close()
                campaign = None
            try:
                if campaign is None:
                    began, campaign = seed, make()
                tally.kinds[campaign.round(seed)] += 1
            except Exception as error:
                tally.failed += 1
                if len(tally.failures) < _KEPT:
                    tally.failures.append((seed, began, f"{type(error).__name__}: {error}"))
                if campaign is not None:
                    campaign.close()
                campaign = None
            tally.ran += 1
            tally.seconds = before + time.monotonic() - begin
            if time.monotonic() - saved > _SAVE_SECONDS:
                saved = time.monotonic()
                if save is not None:
                    save(name, tally)
                if told is not None:
                    told(f"{name}: {tally.ran} rounds, {tally.failed} failed")
    finally:
        if campaign is not None:
            campaign.close()
        if save is not None:
            save(name, tally)
    return tally
