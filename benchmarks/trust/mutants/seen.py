"""Mutants that a campaign has found, of which every run of the tests hunts one: ``python -m
benchmarks.trust.mutants.seen FILE...`` takes over what files of ``caesura bench trust --mutants --resume`` say.

A mutant that has survived so far is no test yet, and by chance would be one that fails.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.trust.mutants.all_mutants import MUTANTS
from benchmarks.trust.mutants.hunt import FOUND

_FILE = Path(__file__).with_name("seen.json")
_SOON = 2  #: rounds of a short hunt


@dataclass(frozen=True)
class Sight:
    """``campaign`` found it in round ``number``."""

    campaign: str
    number: int

    @property
    def soon(self) -> bool:
        """Whether the first rounds did."""
        return self.number < _SOON


def seen() -> dict[str, Sight]:
    """By mutant."""
    return {name: Sight(**fields) for name, fields in json.loads(_FILE.read_text()).items()}


def main(paths: Sequence[str]) -> None:
    """Take over verdicts, later ones instead of earlier ones."""
    known = seen()
    for path in paths:
        for name, verdict in json.loads(Path(path).read_text())["mutants"].items():
            known.pop(name, None)
            if verdict["fate"] == FOUND:
                known[name] = Sight(verdict["campaign"], verdict["number"])
    ordered = {name: asdict(known[name]) for name in MUTANTS if name in known}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(fields)}" for name, fields in ordered.items())
    _FILE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
