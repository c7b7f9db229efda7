"""A process that runs the rounds of one campaign: ``python -m benchmarks.trust.round_worker``, started by
``round_process``.

Its input is one JSON object; each line that it answers is one as well: ``ready`` when all is built and the clock may
start, then one for each round: what it was, or how it failed, and what was reached.
"""

import json
import os
import resource
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from benchmarks.trust.campaign import CHECK, DIED, ERROR, TrustCampaign, round_seed

BLOCK = 200  #: rounds after which a campaign is made anew, in case something goes over from round to round after all
_LINE = 20_000  #: characters of a message


class Rounds:
    """The campaign that ``make`` ("module:function") makes for ``backend``, round after round."""

    def __init__(self, name: str, make: str, backend: str) -> None:
        module, function = make.split(":")
        self._make, self._name, self._backend = getattr(import_module(module), function), name, backend
        self._campaign: TrustCampaign | None = self._make(backend)
        self._began: int | None = None

    def round(self, number: int, again: bool) -> dict[str, Any]:
        """Run one and tell of it. ``again``: one that failed is run alone as well, to see whether it is enough."""
        if self._began is not None and number - self._began >= BLOCK:
            self.close()
        told, campaign = self._tried(number)
        if campaign is not None:
            told["reached"] = dict(campaign.reached)
            campaign.reached.clear()
        if "failed" in told and again and told["began"] != number and "failed" in self._tried(number)[0]:
            told["began"] = number
        return told

    def _tried(self, number: int) -> tuple[dict[str, Any], TrustCampaign | None]:
        try:
            if self._campaign is None:
                self._began, self._campaign = None, self._make(self._backend)
            if self._began is None:
                self._began = number
            campaign = self._campaign
            return {"what": campaign.round(round_seed(self._name, number))}, campaign
        except Exception as error:
            kind = CHECK if isinstance(error, AssertionError) else DIED if isinstance(error, MemoryError) else ERROR
            told = {"failed": kind, "message": f"{type(error).__name__}: {error}"[:_LINE], "began": self._began}
            campaign = self._campaign
            self.close()
            return told, campaign

    def close(self) -> None:
        """Close the campaign; the next round makes another."""
        campaign, self._campaign = self._campaign, None
        if campaign is not None:
            with suppress(Exception):
                campaign.close()


def _limit_memory(more: int) -> None:
    """What this process and those that it starts may use beyond what it has now; they may lift it for themselves."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + more, hard))


def _answer(out: TextIO, told: dict[str, Any]) -> None:
    print(json.dumps(told), file=out, flush=True)


def main() -> None:
    """Run the rounds that the input asks for."""
    warnings.simplefilter("ignore")
    asked = json.loads(sys.stdin.readline())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed
    try:
        rounds = Rounds(asked["name"], asked["make"], asked["backend"])
    except Exception as error:
        _answer(out, {"broken": f"{type(error).__name__}: {error}"[:_LINE]})
        return
    _limit_memory(asked["memory"])
    _answer(out, {"ready": True})
    for number in range(asked["first"], asked["end"]):
        _answer(out, rounds.round(number, asked["again"]))
    rounds.close()


if __name__ == "__main__":
    main()
