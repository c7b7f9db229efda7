"""Chooses the backend that a command runs on where the user names none."""

import os

from caesura.terminal import say
from hw.contract.params import SocParams
from sim import DEFAULT_BACKEND, MODEL

VARIABLE = "CAESURA_BACKEND"  #: environment variable that names the backend where a command is given none


def chosen_backend(given: str | None, params: SocParams) -> str:
    """Return ``given``, what :data:`VARIABLE` says, or the default: the fast model while no simulator of the RTL is
    built for ``params``, which one line on standard error tells."""
    if given or os.environ.get(VARIABLE):
        return given or os.environ[VARIABLE]
    if _is_built(params):
        return DEFAULT_BACKEND
    say(
        f"no simulator is built for {params.name} yet: running on the fast model, cycles within a few percent; "
        f"--backend {DEFAULT_BACKEND} builds one and is exact",
        err=True,
    )
    return MODEL


def _is_built(params: SocParams) -> bool:
    from sim.rtl import is_built  # Amaranth is only loaded where it is used

    return is_built(params)
