"""Is the door to the package ``benchmarks``, which the public interface and the command line do without."""

import importlib
from types import ModuleType

from caesura.api import UsageError


def benchmarks(module: str, wanted_by: str) -> ModuleType:
    """Return the module ``benchmarks.<module>``. Raises :class:`UsageError` where the package is not installed."""
    try:
        return importlib.import_module(f"benchmarks.{module}")
    except ModuleNotFoundError as error:
        if error.name not in ("benchmarks", f"benchmarks.{module}"):
            raise
        raise UsageError(
            f"{wanted_by} needs the package 'benchmarks', which is not installed: "
            "run it in a checkout of Caesura, or install Caesura from one (pip install -e .)"
        ) from None
