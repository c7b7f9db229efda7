"""What the parts of an engine share: an engine, and events that a reset takes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.model.engine import Engine


class Part:
    """A part of ``engine``. What it plans by :meth:`later` does not happen once ``generation`` has changed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.generation = 0
        self.reset()

    def reset(self) -> None:
        """The state after a reset of the engine."""
        raise NotImplementedError

    def later(self, time: int, action: Callable[[int, Any], None], subject: Any = None) -> None:
        """Call ``action(time, subject)`` at ``time``."""
        self.engine.agenda.at(time, self._happen, (self.generation, action, subject))

    def _happen(self, time: int, what: tuple[int, Callable[[int, Any], None], Any]) -> None:
        generation, action, subject = what
        if generation == self.generation:
            action(time, subject)
