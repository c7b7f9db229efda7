"""Keeps what a sweep has found so far in a file that survives being killed: a line of JSON for each point."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from caesura.sweep.spec import Point

Figures = dict[str, Any]


class Store:
    """Keeps figures by point in ``folder``. Points are known by what they run, not by their place in a sweep: a sweep
    that has grown keeps what was measured. A line that was cut off when a sweep was killed does not count."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "points.jsonl"
        self._known: dict[str, Figures] = {}
        text = self._path.read_text(errors="replace") if self._path.is_file() else ""
        self._cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                if isinstance(entry["figures"], dict):
                    self._known[entry["key"]] = entry["figures"]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue

    def get(self, key: str) -> Figures | None:
        """Return the figures of a point, or None if it has not been run."""
        return self._known.get(key)

    def put(self, key: str, point: Point, figures: Figures) -> None:
        """Keep the figures of a point, on disk when this returns."""
        self._known[key] = figures
        line = json.dumps({"key": key, "labels": point.labels, "figures": figures})
        with self._path.open("a") as file:
            file.write("\n" * self._cut + line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._cut = False


def key_of(point: Point, content: str, version: str) -> str:
    """Return what tells a point's figures from others: machine, options, policy, ``content`` (a digest of all files
    that it depends on), and the ``version`` of what runs it."""
    what = {
        "version": version,
        "backend": point.backend,
        "params": None if point.params is None else {**point.params.to_dict(), "name": ""},
        "content": content,
        "options": point.options,
        "fallback": point.fallback,
        "policy": (point.policy, point.placement),
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]
