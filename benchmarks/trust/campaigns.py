"""All campaigns by name, and the rows that they make."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.rows import Row, Target
from benchmarks.trust.campaign import ProgressFile, Tally, TrustCampaign, run_campaign
from benchmarks.trust.faults import FaultCampaign
from benchmarks.trust.front_door import FrontDoorCampaign
from benchmarks.trust.program_campaign import ProgramCampaign
from benchmarks.trust.soc import PARAMS
from benchmarks.trust.storms import REQUESTS, StormCampaign
from caesura.api import UsageError


@dataclass(frozen=True)
class CampaignKind:
    """A kind of campaign. ``must``, ``aim``: how many rounds show something; ``make`` takes the simulator's backend."""

    must: int
    aim: int
    make: Callable[[str], TrustCampaign]


KINDS: dict[str, CampaignKind] = {
    "hostile": CampaignKind(20_000, 100_000, partial(ProgramCampaign, hostile=True)),
    "differential": CampaignKind(20_000, 100_000, partial(ProgramCampaign, hostile=False)),
    "frontdoor": CampaignKind(20_000, 100_000, FrontDoorCampaign),
    "faults": CampaignKind(2_000, 10_000, FaultCampaign),
    "storms": CampaignKind(10_000 // REQUESTS, 100_000 // REQUESTS, StormCampaign),
}


def run_campaigns(
    backend: str,
    *,
    seconds: float,
    seed: int = 0,
    only: Sequence[str] = (),
    rounds: int | None = None,
    progress_file: Path | None = None,
    told: Callable[[str], None] | None = None,
) -> list[Row]:
    """Run campaigns, each for an equal part of ``seconds``; a row for each. Raises :class:`UsageError`.

    ``progress_file``: rounds that it names are not run again, and what is run is written to it.
    """
    for name in only:
        if name not in KINDS:
            raise UsageError(f"no campaign named {name!r}; known are {', '.join(KINDS)}")
    chosen = only or list(KINDS)
    known = ProgressFile(progress_file) if progress_file is not None else None
    rows = []
    for name in chosen:
        tally = known.tally(name, seed) if known is not None else Tally(seed)
        make, save = partial(KINDS[name].make, backend), known.save if known is not None else None
        run_campaign(name, make, tally, seconds=seconds / len(chosen), rounds=rounds, save=save, told=told)
        rows.append(_row(name, tally))
    return rows


def _row(name: str, tally: Tally) -> Row:
    kind = KINDS[name]
    said = f"{tally.ran:,} rounds from seed {tally.first} in {tally.seconds:.0f} s"
    if tally.failures:
        seed, began, message = tally.failures[0]
        said = f"seed {seed} (see it again with --seed {began}): {message.splitlines()[0]}"
    detail = tally.to_fields() | {
        "must_run": kind.must,
        "aim_run": kind.aim,
        "params": PARAMS.name,
        "explanation": said,
    }
    return Row(name, float(tally.failed), Target(0, 0, "failures", at_most=True), tally.ran > 0, detail)
