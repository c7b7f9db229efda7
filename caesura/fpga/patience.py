"""Runs nextpnr, and ends it where its router goes round for ever: ``python patience.py COMMAND ...``.

Router2 takes up the nets of wires that are in use twice, and where it is told to those that are too slow, round by
round, until none is left. Of what does not fit, it says the same number for hours. It is ended as well where nobody
waits for it any more: who started this process was killed.
"""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass

#: Rounds without a smaller number after which no more are waited for: those that ended well had 33 at most.
PATIENCE = 60
#: Where so many are left each round is long, and none that stood still there for ``SHORT`` rounds ended well.
MANY, SHORT = 1_000, 20
EXIT_CODE = 3
_LOOK = 1.0  #: seconds after which it is looked again whether somebody waits
_ROUND = re.compile(r"\biter=(\d+) .*?\boverused=(\d+)(?:.* tmgfail=(\d+))?")


@dataclass
class RouterRounds:
    """What a log of router2 says so far: the last ``round``; the fewest that a round left, ``twice`` wires in use twice
    and ``slow`` connections that are too slow, and the round ``since`` which there were no fewer."""

    round: int = 0
    twice: int = 0
    slow: int = 0
    since: int = 0

    @classmethod
    def of(cls, lines: Iterable[str]) -> "RouterRounds":
        """Return what all ``lines`` say."""
        rounds = cls()
        for line in lines:
            rounds.read(line)
        return rounds

    def read(self, line: str) -> None:
        """Take in a line; most say nothing of rounds."""
        if found := _ROUND.search(line):
            self.round, twice, slow = int(found[1]), int(found[2]), int(found[3] or 0)
            if not self.since or twice + slow < self.twice + self.slow:
                self.twice, self.slow, self.since = twice, slow, self.round

    @property
    def hopeless(self) -> bool:
        """Return whether no smaller number is to be waited for."""
        return self.round - self.since >= (SHORT if self.twice + self.slow >= MANY else PATIENCE)

    def __str__(self) -> str:
        slow = f" and {self.slow:,} connections too slow" if self.slow else ""
        return f"{self.twice:,} wires in use twice{slow} at best, after {self.since} of {self.round} rounds"


def main(command: list[str]) -> int:
    """Run ``command``, passing on the bytes that it prints, and return its exit code, or ``EXIT_CODE`` if it was ended.
    All of it goes to standard output, which is a log."""
    rounds, log = RouterRounds(), sys.stdout.buffer
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        threading.Thread(target=_end_unawaited, args=(process, os.getppid()), daemon=True).start()
        for line in process.stdout:
            log.write(line)
            log.flush()
            rounds.read(line.decode(errors="replace"))
            if rounds.hopeless:
                process.kill()
                log.write(f"error: given up: {rounds}\n".encode())
                return EXIT_CODE
    return process.returncode


def _end_unawaited(process: subprocess.Popen[bytes], parent: int) -> None:
    while True:
        try:
            process.wait(_LOOK)
            return
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
