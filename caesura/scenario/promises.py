"""Defines what a scenario promises its streams, and the rates they are held to, for ``caesura admit``."""

from typing import Annotated, Literal

from pydantic import Field

from caesura.scenario.file_table import Count, FileTable, NotNegative, Positive


class Sporadic(FileTable):
    """Sends requests that are due at least ``period`` apart, ``burst`` of them at once at the most, each up to
    ``jitter`` after it is due. A run sends ``count`` of them as densely as that allows, the first due at ``start``."""

    kind: Literal["sporadic"]
    period: Positive
    jitter: NotNegative = 0.0
    burst: Annotated[int, Field(ge=1, le=1000)] = 1
    count: Count = 100
    start: NotNegative = 0.0

    def due(self, number: int) -> float:
        """Return when request ``number`` is due."""
        return self.start + max(0, number - self.burst + 1) * self.period


class Police(FileTable):
    """Holds a stream to a rate: ``burst`` requests at once, and one each ``period``. What comes sooner waits."""

    period: Positive
    burst: Annotated[int, Field(ge=1, le=1000)] = 1


class CertificateSpec(FileTable):
    """Says under which assumptions a certificate is given.

    ``dram``: what loads, stores and fetches beside a stream: requests of other streams, as often as they may come
    (``pair``), or all other engines all the time (``unlimited``). ``faults``: failures in a busy period that the
    promises survive. ``priorities``: as given, or searched for (Audsley).
    """

    dram: Literal["pair", "unlimited"] = "pair"
    faults: Literal[0] = 0
    priorities: Literal["given", "search"] = "given"
