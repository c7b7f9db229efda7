"""Delays values that travel beside a pipeline."""

from amaranth.hdl import Module, Signal, Value


def delayed(m: Module, en: Value, value: Value, cycles: int, name: str) -> Signal:
    """Return ``value`` as it was ``cycles`` (at least 1) cycles with ``en`` ago, as an unsigned number."""
    stages = [Signal(len(value), name=f"{name}_ago{k + 1}") for k in range(cycles)]
    with m.If(en):
        m.d.sync += [later.eq(here) for here, later in zip([value, *stages], stages, strict=False)]
    return stages[-1]
