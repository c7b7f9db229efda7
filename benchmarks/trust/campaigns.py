"""All campaigns by name, how many rounds of each show something, and the rows that they make."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures import Row, Target
from benchmarks.trust import must_reach
from benchmarks.trust.campaign import KEPT, ProgressFile, Tally
from benchmarks.trust.round_process import Asked, run_rounds
from benchmarks.trust.soc import PARAMS
from caesura import UsageError
from hw.contract.params import MIB


@dataclass(frozen=True)
class CampaignKind:
    """A kind of campaign.

    ``make``: "module:function" that takes the simulator's backend and makes a ``TrustCampaign``. ``plain``, ``full``:
    rounds below which a plain run, or a full one, has shown nothing; ``mutant``: rounds within which a mutant must be
    found. ``must_hit``: what the rounds of a plain run must have reached at least, and how often. ``memory``: bytes
    that its process may take, ``patience``: seconds that one of its rounds may take.
    """

    make: str
    plain: int
    mutant: int
    full: int
    must_hit: Mapping[str, int] = field(default_factory=dict)
    memory: int = 2048 * MIB
    patience: float = 120.0

    def asked(self, name: str, backend: str, *, again: bool = True, failures: int = KEPT) -> Asked:
        """For a process that runs rounds of it."""
        return Asked(name, self.make, backend, self.memory, self.patience, again, failures)

    def missed(self, tally: Tally, rounds: int) -> list[str]:
        """What a run that was to have ``rounds`` rounds did not reach."""
        wanted = {name: least for name, least in self.must_hit.items() if rounds >= self.plain}
        least = [(f"{rounds:,} rounds", tally.ran, rounds)]
        least += [(f"{name!r} {count:,} times", tally.reached[name], count) for name, count in wanted.items()]
        return [f"{what}, but {found:,}" for what, found, needed in least if found < needed]


KINDS: dict[str, CampaignKind] = {
    "edges": CampaignKind("benchmarks.trust.edges:first", 1, 1, 50, must_reach.EDGES),
    "edges_second": CampaignKind("benchmarks.trust.edges:second", 1, 1, 50, must_reach.EDGES | {"semaphores": 6}),
    "neighbours": CampaignKind("benchmarks.trust.neighbours:NeighbourCampaign", 200, 60, 5_000, must_reach.NEIGHBOURS),
    "hostile": CampaignKind("benchmarks.trust.program_campaign:hostile", 250, 100, 17_000, must_reach.HOSTILE),
    "differential": CampaignKind(
        "benchmarks.trust.program_campaign:differential", 250, 100, 17_000, must_reach.DIFFERENTIAL
    ),
    "frontdoor": CampaignKind("benchmarks.trust.front_door:FrontDoorCampaign", 1_000, 300, 20_000),
    "faults": CampaignKind("benchmarks.trust.faults:FaultCampaign", 250, 80, 10_000, must_reach.FAULTS),
    "storms": CampaignKind("benchmarks.trust.storms:StormCampaign", 100, 60, 10_000, must_reach.STORMS),
    "late": CampaignKind("benchmarks.trust.late:LateCampaign", 100, 20, 3_000, must_reach.LATE),
    "residue": CampaignKind("benchmarks.trust.residue:ResidueCampaign", 60, 40, 3_000, must_reach.RESIDUE),
    "exchange": CampaignKind("benchmarks.trust.exchange:ExchangeCampaign", 200, 100, 10_000, must_reach.EXCHANGE),
    "urgent": CampaignKind("benchmarks.trust.urgent:UrgentCampaign", 200, 100, 10_000, must_reach.URGENT),
    "images": CampaignKind("benchmarks.trust.images:ImageCampaign", 2_000, 600, 100_000, must_reach.IMAGES),
    "c_driver": CampaignKind("benchmarks.trust.c_driver:CDriverCampaign", 2_000, 600, 100_000, must_reach.C_DRIVER),
}


def chosen_kinds(only: Sequence[str]) -> dict[str, CampaignKind]:
    """The campaigns that are named, by default all. Raises :class:`UsageError`."""
    for name in only:
        if name not in KINDS:
            raise UsageError(f"no campaign named {name!r}; known are {', '.join(KINDS)}")
    return {name: KINDS[name] for name in only or KINDS}


def run_campaigns(
    backend: str,
    *,
    seconds: float = math.inf,
    first: int = 0,
    only: Sequence[str] = (),
    full: bool = False,
    rounds: int | None = None,
    progress_file: Path | None = None,
    told: Callable[[str], None] | None = None,
) -> list[Row]:
    """Run campaigns from round ``first`` on, a plain run of each or a ``full`` one; a row for each. ``seconds``: that
    all together may take, what they build included; a campaign may take an equal part of what is left. ``rounds``: of
    each, instead of those of its kind; what must be reached is asked of plain runs and longer ones only.

    ``progress_file``: rounds that it names are not run again, and what is run is written to it. Raises
    :class:`UsageError`.
    """
    kinds = chosen_kinds(only)
    known = ProgressFile(progress_file) if progress_file is not None else None
    rows, ends = [], time.monotonic() + seconds
    for number, (name, kind) in enumerate(kinds.items()):
        tally = known.tally(name, first) if known is not None else Tally(first)
        wanted = rounds if rounds is not None else kind.full if full else kind.plain
        left = ends - time.monotonic()
        run_rounds(
            kind.asked(name, backend), tally, rounds=wanted, seconds=left / (len(kinds) - number),
            save=known.save if known is not None else None, told=told,
        )  # fmt: skip
        rows.append(_row(name, kind, tally, wanted))
    return rows


def _row(name: str, kind: CampaignKind, tally: Tally, wanted: int) -> Row:
    missed = kind.missed(tally, wanted)
    said = f"{tally.ran:,} rounds from {tally.first} on in {tally.seconds:.0f} s"
    if tally.broken:
        said = f"cannot begin: {tally.broken.splitlines()[0]}"
    elif tally.failures:
        one = tally.failures[0]
        said = f"round {one.number} (see it again with --seed {one.began}): {one.message.splitlines()[0]}"
    elif missed:
        said = f"did not reach {'; '.join(missed)}"
    detail = tally.to_fields() | {"missed": missed, "params": PARAMS.name, "explanation": said}
    reached = not missed and not tally.broken
    return Row(name, float(tally.failed), Target(0, 0, "failures", at_most=True), reached, detail)
