"""Mutants that a campaign has found, of which every run of the tests hunts a few: ``python -m
benchmarks.trust.mutants.seen FILE...`` takes over what files of ``caesura bench trust --mutants --resume`` say.

A mutant that has survived so far is no test yet, and by chance would be one that fails.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.trust.mutants.all_mutants import MUTANTS
from benchmarks.trust.mutants.hunt import FOUND

_FILE = Path(__file__).with_name("seen.json")


def seen() -> dict[str, str]:
    """The campaign that found it, by mutant."""
    return json.loads(_FILE.read_text())


def main(paths: Sequence[str]) -> None:
    """Take over verdicts, later ones instead of earlier ones."""
    known = seen()
    for path in paths:
        for name, verdict in json.loads(Path(path).read_text())["mutants"].items():
            known.pop(name, None)
            if verdict["fate"] == FOUND:
                known[name] = verdict["campaign"]
    ordered = {name: known[name] for name in MUTANTS if name in known}
    _FILE.write_text(json.dumps(ordered, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
