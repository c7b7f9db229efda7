"""Says what a shell completes options with."""

from collections.abc import Callable, Iterable

from hw.contract.params import PRESETS
from sim import BACKENDS
from sw.runtime.policies import ORDER, PLACEMENT

Choices = Callable[[str], list[str]]


def _among(names: Iterable[str]) -> Choices:
    """Return what completes the beginning of one of ``names``."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


presets = _among(PRESETS)
backends = _among(BACKENDS)
any_backends = _among(("synthetic", *BACKENDS))
policies = _among((*ORDER, *PLACEMENT))
placements = _among(PLACEMENT)
