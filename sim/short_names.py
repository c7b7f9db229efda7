"""Makes long names short for tables and plots, so that no two of them look alike."""

from collections import Counter
from collections.abc import Iterable, Mapping

_LEFT_OUT = "…"
_BEFORE = 4  #: a part of the room, for what stands before that in which names differ


def shortened(name: str, most: int = 44) -> str:
    """Return a name, with its middle left out if it is longer than ``most``."""
    return name if len(name) <= most else _ends(name, most, most // 3)


def distinct_names(names: Iterable[str], most: int) -> Mapping[str, str]:
    """Return the short form of each of ``names``, at most ``most`` characters, no two alike: long names have their
    middle left out, of all as much on either side as tells most of them apart. What still looks alike is shown where it
    differs, and if that does not do, numbered.

    >>> distinct_names(["/encoder/layers.0/attention/scores", "/encoder/layers.1/attention/scores"], 20)
    {'/encoder/layers.0/attention/scores': '/encoder/layers.0/a…', ...}
    """
    known = list(dict.fromkeys(names))
    heads = sorted(range(most), key=lambda head: abs(head - most // 3))
    best: dict[str, str] = {}
    fewest = len(known) + 1
    for head in heads:
        found = {name: name if len(name) <= most else _ends(name, most, head) for name in known}
        alike = len(known) - len(set(found.values()))
        if alike < fewest:
            best, fewest = found, alike
        if not alike:
            break
    return _apart(best, most) if fewest else best


def _ends(name: str, most: int, head: int) -> str:
    tail = most - head - 1
    return name[:head] + _LEFT_OUT + (name[-tail:] if tail > 0 else "")


def _apart(found: dict[str, str], most: int) -> dict[str, str]:
    """Return short forms of which those that were alike are shown where they differ, or numbered."""
    count = Counter(found.values())
    alike = [name for name, short in found.items() if count[short] > 1 and name != short]
    for short in {found[name] for name in alike}:
        group = [name for name in alike if found[name] == short]
        begin = max(0, _common(min(group), max(group)) - most // _BEFORE)
        found |= {name: _from(name, begin, most) for name in group}
    used = {short for name, short in found.items() if name not in alike}
    for name in alike:
        short, number = found[name], 1
        while short in used:
            number += 1
            mark = f"{_LEFT_OUT}{number}"
            short = found[name][: max(0, most - len(mark))] + mark
        found[name] = short
        used.add(short)
    return found


def _common(one: str, other: str) -> int:
    """Return how many characters two names begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _from(name: str, begin: int, most: int) -> str:
    """Return what stands in ``name`` from ``begin`` on."""
    rest = name[begin:]
    room = most - bool(begin)
    shown = rest if len(rest) <= room else rest[: room - 1] + _LEFT_OUT
    return _LEFT_OUT * bool(begin) + shown
