"""Finds the policies that a scenario is served under, by name."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from caesura.api import UsageError
from sw.runtime.policies import ORDER, PLACEMENT, Fcfs, OrderPolicy, PlacementPolicy, by_name, placement_for


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
    def named(cls, name: str, placement: str = "queue_time", options: Mapping[str, Any] | None = None) -> "Policies":
        """Return the policy ``name`` with its ``options``. One for the order of layers is joined by one for
        ``placement``.

        Raises ``UsageError`` for a name or an option that does not exist.
        """
        chosen = dict(options or {})
        if ".py:" in name:
            name = from_file(name)
        if name in PLACEMENT:
            if chosen:
                raise UsageError(f"policy {name!r} has no options, {', '.join(chosen)} given")
            return cls(name, Fcfs, partial(placement_for, name), at_arrival=True)
        if name not in ORDER:
            known = ", ".join((*ORDER, *PLACEMENT))
            raise UsageError(f"no policy named {name!r}; there are {known}, and file.py:Class for one of your own")
        if placement not in PLACEMENT:
            raise UsageError(f"no placement policy named {placement!r}; there are {', '.join(PLACEMENT)}")

        def order() -> OrderPolicy:
            return by_name(name, **chosen)

        try:
            order()
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None
        except Exception as error:  # whatever the maker of a policy of one's own does
            raise UsageError(f"policy {name!r} cannot be made: {type(error).__name__}: {error}") from None
        return cls(name, order, partial(placement_for, placement))


def from_file(text: str) -> str:
    """Return the name under which the policy ``file.py:Class`` can be found from now on. The class is an
    :class:`~sw.runtime.policies.OrderPolicy`. Raises ``UsageError`` if it cannot be loaded."""
    path, _, name = text.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if not Path(path).is_file() or spec is None or spec.loader is None:
        raise UsageError(f"policy {text!r}: no such Python file {path!r}")
    module, known = importlib.util.module_from_spec(spec), dict(ORDER)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file does
        raise UsageError(f"policy {text!r}: {path} fails: {type(error).__name__}: {error}") from None
    finally:
        ORDER.update(known)  # a class that registers itself takes no other's name
    found = getattr(module, name, None)
    if not (isinstance(found, type) and callable(getattr(found, "choose", None)) and hasattr(found, "window")):
        classes = [n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__]
        there = f"its classes are {', '.join(classes)}"
        raise UsageError(f"policy {text!r}: {name!r} is no policy (an OrderPolicy with choose) in {path}; {there}")
    ORDER[name] = found
    return name
