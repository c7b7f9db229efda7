"""Finds the policies that a scenario is served under: by name, class or object, or in a module or file."""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from caesura.api import UsageError
from sw.runtime.policies import (
    ORDER,
    PLACEMENT,
    Fcfs,
    OrderChoice,
    OrderPolicy,
    PlacementChoice,
    PlacementPolicy,
    order_maker,
    placement_maker,
    policy_name,
)

PolicyChoice = OrderChoice | PlacementChoice


@dataclass(frozen=True)
class Policies:
    """Says what decides: the order of layers, and the queue that each joins.

    ``at_arrival``: all operators of a request are placed when it arrives, as queue balancers do; otherwise each time a
    layer starts, the next one is chosen.
    """

    name: str
    order: Callable[[], OrderPolicy]
    placement: Callable[..., PlacementPolicy]  #: from initial waits of the queues, and since when they decay if they do
    at_arrival: bool = False

    @classmethod
    def named(
        cls, policy: PolicyChoice, placement: PlacementChoice = "queue_time", options: Mapping[str, Any] | None = None
    ) -> "Policies":
        """Return ``policy`` (a name, ``module:Class``, ``file.py:Class``, a class, or an object) with its ``options``.
        One for the order of layers is joined by one for ``placement``.

        Raises ``UsageError`` for a policy or an option that does not exist.
        """
        name, chosen = policy_name(policy), dict(options or {})
        found, placing = _found(policy), _found(placement)
        if isinstance(placing, str) and placing not in PLACEMENT:
            raise UsageError(f"no placement policy named {placing!r}; there are {', '.join(PLACEMENT)}")
        if found in PLACEMENT if isinstance(found, str) else hasattr(found, "place"):
            if chosen:
                raise UsageError(f"policy {name!r} has no options, {', '.join(chosen)} given")
            return cls(name, Fcfs, placement_maker(found), at_arrival=True)
        if isinstance(found, str) and found not in ORDER:
            known = ", ".join((*ORDER, *PLACEMENT))
            raise UsageError(
                f"no policy named {name!r}; there are {known}, and module:Class or file.py:Class for one of your own"
            )
        try:
            return cls(name, order_maker(found, **chosen), placement_maker(placing))
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None
        except Exception as error:  # whatever the maker of a policy of one's own does
            raise UsageError(f"policy {name!r} cannot be made: {type(error).__name__}: {error}") from None


def policy_of_scenario(policy: str | None, folder: Path) -> str | None:
    """Return what the file of a scenario names as its policy, from wherever that is looked at: files of policies are
    relative to its ``folder``."""
    place, _, name = (policy or "").rpartition(":")
    return f"{folder / place}:{name}" if place.endswith(".py") else policy


@contextlib.contextmanager
def _current_folder() -> Iterator[None]:
    """Let modules of the current folder be imported, as ``python -m`` does."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def policy_file(policy: str) -> Path | None:
    """Return the file that ``module:Class`` or ``file.py:Class`` comes from, None for other names."""
    place, colon, _ = policy.rpartition(":")
    if not colon:
        return None
    if place.endswith(".py"):
        return Path(place)
    try:
        with _current_folder():
            spec = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _found(choice: PolicyChoice) -> Any:
    """Return the class that ``module:Class`` or ``file.py:Class`` names, and what is none of them as it is."""
    if not isinstance(choice, str) or ":" not in choice:
        return choice
    place, _, name = choice.rpartition(":")
    orders, placements = dict(ORDER), dict(PLACEMENT)
    try:
        module = _from_file(choice, place) if place.endswith(".py") else _imported(choice, place)
    finally:
        ORDER.update(orders)  # a class that registers itself takes no other's name
        PLACEMENT.update(placements)
    found = getattr(module, name, None)
    if not (isinstance(found, type) and any(callable(getattr(found, made, None)) for made in ("choose", "place"))):
        classes = [n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__]
        raise UsageError(
            f"policy {choice!r}: {name!r} is no policy (a class with choose or place) in {place}; its classes are "
            f"{', '.join(classes)}"
        )
    return found


def _from_file(choice: str, place: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    if not Path(place).is_file() or spec is None or spec.loader is None:
        raise UsageError(f"policy {choice!r}: no such Python file {place!r}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file does
        raise UsageError(f"policy {choice!r}: {place} fails: {type(error).__name__}: {error}") from None
    return module


def _imported(choice: str, place: str) -> ModuleType:
    try:
        with _current_folder():
            return importlib.import_module(place)
    except Exception as error:  # whatever the module does
        raise UsageError(
            f"policy {choice!r}: module {place!r} cannot be imported: {type(error).__name__}: {error}; a file is named "
            "as file.py:Class"
        ) from None
