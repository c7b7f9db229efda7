"""The corpus of digests: what every account of time says of every case, kept in ``known_digests.json``.

A change of a digest is a change of images, orders or bounds. ``--write`` keeps the digests as they are now: the commit
that means to change them does so. ``--show`` prints the numbers behind a digest, so that those of two versions can be
compared line by line.

    python -m tests.sim.cost.corpus --write
    python -m tests.sim.cost.corpus --show "basex2 digits" "program order"
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from tests.sim.cost.accounts import Digests, Ledger, model_digests
from tests.sim.cost.corpus_cases import model_cases
from tests.sim.cost.synthetic_accounts import synthetic_cases

FILE = Path(__file__).with_name("known_digests.json")
OUTSIDE = "_int8"  #: how the names of cases end whose networks are not part of the repository
HINT = "if the change is meant: python -m tests.sim.cost.corpus --write"

Measure = Callable[[Ledger], Digests]


def cases() -> Iterator[tuple[str, Measure]]:
    """The name of each case, and what gives its digests."""
    yield from synthetic_cases()
    for case in model_cases():
        yield case.name, partial(model_digests, case)


def known_digests() -> dict[str, Digests]:
    """The committed table."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def differences(known: Mapping[str, Digests], found: Mapping[str, Digests]) -> list[str]:
    """Where two tables differ, in those cases that were measured: the case and the account."""
    return [
        f"{case}: {account}"
        for case, digests in found.items()
        for account in sorted({*digests, *known.get(case, {})})
        if digests.get(account) != known.get(case, {}).get(account)
    ]


def write(found: Mapping[str, Digests]) -> None:
    """Keep ``found``, one line for each case. Cases of networks that are not there stay as they are, others go."""
    known = known_digests()
    table = {name: known[name] for name in known if name.endswith(OUTSIDE)} | found
    lines = [f"{json.dumps(name)}: {json.dumps(digests)}" for name, digests in sorted(table.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    """Write the table, or show an account of a case."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.cost.corpus", description="digests of accounts of time")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help=f"rewrite {FILE.name}")
    what.add_argument("--show", nargs=2, metavar=("CASE", "ACCOUNT"), help="print the numbers behind a digest")
    given = parser.parse_args()
    if given.write:
        write({name: measure(Ledger()) for name, measure in cases()})
        return
    case, account = given.show
    measures = dict(cases())
    if case not in measures:
        parser.error(f"no case {case!r}; there are {', '.join(sorted(measures))}")
    ledger = Ledger(account)
    measures[case](ledger)
    print("\n".join(ledger.text))


if __name__ == "__main__":
    main()
