"""``python -m tests.support.bus_log``: dump, compare and record the logs; see the package."""

import argparse
from pathlib import Path

from tests.support.bus_log.log import Digests, difference
from tests.support.bus_log.scenarios import SCENARIOS, known, play, record


def main() -> int:
    """Run a command; 1 if logs differ."""
    parser = argparse.ArgumentParser(prog="tests.support.bus_log")
    commands = parser.add_subparsers(dest="command", required=True)
    dump = commands.add_parser("dump", help="write the log of each scenario to a folder")
    dump.add_argument("folder", type=Path)
    dump.add_argument("names", nargs="*", metavar="name", help="of scenarios; all by default")
    compare = commands.add_parser("compare", help="say where the logs of two folders part")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    commands.add_parser("record", help="take the logs as they are for the right ones")
    options = parser.parse_args()
    if options.command == "dump":
        options.folder.mkdir(parents=True, exist_ok=True)
        for name in options.names or SCENARIOS:
            (options.folder / f"{name}.log").write_text("\n".join(play(name)) + "\n")
        return 0
    if options.command == "compare":
        return _compare(options.before, options.after)
    before, after = known(), {name: Digests.of(play(name)) for name in SCENARIOS}
    record(after)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            print(f"{name}: changed")
    return 0


def _compare(before: Path, after: Path) -> int:
    names, found = sorted({path.name for folder in (before, after) for path in folder.glob("*.log")}), 0
    for name in names:
        if not (before / name).exists() or not (after / name).exists():
            text = f"is not in both {before} and {after}"
        else:
            text = difference(*((folder / name).read_text().splitlines() for folder in (before, after)))
        if text:
            found = 1
            print(f"{name.removesuffix('.log')}: {text}")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
