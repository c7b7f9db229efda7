"""Mutants that no campaign can find, as they change nothing that a tenant can see: with a reason and evidence."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trust.mutants.mutant import Mutant
from benchmarks.trust.round_process import ROOT

_FILE = Path(__file__).with_name("survivors.json")
MOST = 4  #: a list that grows is a list of excuses


@dataclass(frozen=True)
class Survivor:
    """``reason``: why it is equivalent; ``evidence``: what was measured or proved; ``digest``: of the file that it
    changes, as it was then: an entry for another one is stale."""

    reason: str
    evidence: str
    commit: str
    digest: str


def survivors() -> dict[str, Survivor]:
    """By mutant."""
    return {name: Survivor(**fields) for name, fields in json.loads(_FILE.read_text()).items()}


def holds(mutant: Mutant, survivor: Survivor) -> bool:
    """Whether the file is as it was when the entry was written."""
    return digest(mutant) == survivor.digest


def digest(mutant: Mutant) -> str:
    """Of the file that ``mutant`` changes."""
    return hashlib.sha256((ROOT / mutant.file).read_bytes()).hexdigest()[:16]
