"""Rows of a benchmark's report: one figure each, with what it must and should reach."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Target:
    """What a figure ``must`` and should (``aim``) reach, in ``unit``. ``at_most``: smaller is better."""

    must: float
    aim: float
    unit: str = "%"
    at_most: bool = False

    def met(self, value: float) -> bool:
        """Return whether ``value`` is within ``must``."""
        return value <= self.must if self.at_most else value >= self.must

    def reached(self, value: float) -> bool:
        """Return whether ``value`` is as good as ``aim``."""
        return value <= self.aim if self.at_most else value >= self.aim


@dataclass(frozen=True)
class Row:
    """One figure. ``value`` is None if it could not be measured; ``ok``: it meets ``must`` and every output it
    rests on equals the golden result, or it was ``skipped`` as something it needs is not installed."""

    name: str
    value: float | None
    target: Target
    correct: bool
    detail: dict[str, Any] = field(default_factory=dict)
    skipped: bool = False

    @property
    def ok(self) -> bool:
        """See the class."""
        return self.skipped or (self.correct and self.value is not None and self.target.met(self.value))

    @property
    def explanation(self) -> str:
        """Short: why there is no value, what is wrong, or which layer or part of the cycles is behind the value."""
        if "explanation" in self.detail:
            return str(self.detail["explanation"])
        if self.value is None:
            return str(self.detail.get("error", ""))
        if not self.correct:
            return str(self.detail.get("outputs", "outputs differ from onnxruntime's"))
        if "worst" in self.detail:
            return f"worst: {self.detail['worst']}"
        parts = self.detail.get("parts")
        if not parts:
            return ""
        losses = sorted(((cycles, name) for name, cycles in parts.items() if name != "peak"), reverse=True)[:2]
        lost = ", ".join(f"{name} {cycles / self.detail['cycles']:.1%}" for cycles, name in losses)
        return f"{self.detail['cycles']:,} cycles; lost: {lost}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: ``name, value, unit, must, aim, ok, detail``."""
        aimed = self.value is not None and self.target.reached(self.value)
        sense = "at most" if self.target.at_most else "at least"
        return {
            "name": self.name,
            "value": None if self.value is None else round(self.value, 3),
            "unit": self.target.unit,
            "must": self.target.must,
            "aim": self.target.aim,
            "ok": self.ok,
            "detail": {"target": sense, "aim_reached": aimed, "correct": self.correct, **self.detail},
        }
