"""Knows which weights are still in LV2 from an earlier inference, so that the prologue that would bring them is left
out."""

from collections.abc import Iterable, Mapping

from sw.driver.memory.ranges import Range, overlap


class ResidentWeights:
    """Keeps what is known to lie in LV2: ranges with the tenant whose it is and the digest of the bytes. Everything
    else is unknown, so that forgetting is always safe."""

    def __init__(self) -> None:
        self._known: dict[Range, tuple[str | None, bytes]] = {}

    def enter(self, windows: Iterable[Range], tenant: str | None, weights: Mapping[Range, bytes]) -> None:
        """Enter that a model may write all of ``windows`` from now on, but for ``weights``, which are its own or become
        so."""
        mine = {where: (tenant, digest) for where, digest in weights.items()}
        windows = list(windows)
        self._known = {
            where: known
            for where, known in self._known.items()
            if mine.get(where) == known or not overlap([where], windows)
        }

    def overwritten(self, ranges: Iterable[Range]) -> None:
        """Forget ``ranges``, where something else was or will be written."""
        self.enter(ranges, None, {})

    def put(self, where: Range, tenant: str | None, digest: bytes) -> None:
        """Enter that a prologue has brought these bytes, and the job behind it has ended."""
        self.overwritten([where])
        self._known[where] = tenant, digest

    def holds(self, where: Range, tenant: str | None, digest: bytes) -> bool:
        """Return whether LV2 has these bytes there."""
        return self._known.get(where) == (tenant, digest)
