"""The run time: inferences of loaded models, above the driver."""

from sw.runtime.ports import InputError
from sw.runtime.session import Session
from sw.runtime.stats import LayerStats, RunStats

__all__ = ["InputError", "LayerStats", "RunStats", "Session"]
