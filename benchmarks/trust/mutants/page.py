"""The table of promises in ``docs/security.md``: ``python -m benchmarks.trust.mutants.page`` writes it anew.

Each row is a mutant: what of a promise it breaks, and which campaign must find that.
"""

from pathlib import Path

from benchmarks.trust.mutants.all_mutants import MUTANTS
from benchmarks.trust.mutants.mutant import PROMISES
from benchmarks.trust.round_process import ROOT

PAGE = ROOT / "docs" / "security.md"
_BEGIN, _END = "<!-- mutants -->\n", "<!-- /mutants -->"


def table() -> str:
    """In Markdown, by promise."""
    lines = ["| promise | mutant | what it does | where | found by |", "|---|---|---|---|---|"]
    for promise, place in PROMISES.items():
        name = place.strip("#*. 1234567890")
        for mutant in MUTANTS.values():
            if mutant.promise == promise:
                campaigns = ", ".join(f"`{campaign}`" for campaign in mutant.campaigns)
                lines.append(f"| {name} | {mutant.name} | {mutant.what} | `{mutant.file}` | {campaigns} |")
    return "\n".join(lines) + "\n"


def written(page: str) -> str:
    """``page`` with the table as it must be."""
    before, rest = page.split(_BEGIN)
    _, after = rest.split(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


def main(path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(written(path.read_text()))


if __name__ == "__main__":
    main()
