"""Which buffers stay in LV2 where not all can, chosen exactly as far as that is possible: those with the most traffic.

Steps come one after the other, so what was chosen before a step matters only by the buffers that are still alive there.
The best choice is found from the first step to the last (dynamic programming): by set of buffers that stay and are
alive, the traffic that is saved. Addresses are found afterwards; they seldom cost anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_CHOICES = 1024  #: sets that are followed from one step to the next


@dataclass(frozen=True)
class BufferLife:
    """Is a buffer that may stay: its ``size``, the bytes of ``traffic`` that this saves, and the ``first`` and the
    ``last`` step that use it."""

    size: int
    traffic: int
    first: int
    last: int


@dataclass(frozen=True)
class _Chosen:
    """Is a choice up to a step: what is alive of it, in bytes too, what it saves, and the last buffer that stays."""

    alive: int
    used: int
    saved: int
    last: int = -1
    before: "_Chosen | None" = None


def residents(
    candidates: Sequence[BufferLife], touched: Sequence[int], always: Sequence[bool], area: int, high: int
) -> list[int]:  # fmt: skip
    """Return the numbers of the ``candidates`` that stay in ``high`` bytes, so that the most traffic is saved.
    ``touched``: by step a mask of those that pass a staging area of ``area`` bytes there if they do not stay;
    ``always``: whether something does anyway."""
    begin: list[list[int]] = [[] for _ in touched]
    end = [0] * len(touched)
    for number, one in enumerate(candidates):
        begin[one.first].append(number)
        end[one.last] |= 1 << number
    choices = [_Chosen(0, 0, 0)]
    for step, begun in enumerate(begin):
        for number in begun:
            one = candidates[number]
            choices += [
                _Chosen(was.alive | 1 << number, was.used + one.size, was.saved + one.traffic, number, was)
                for was in choices
                if was.used + one.size <= high
            ]
            choices = _best(choices)
        low = high - area
        choices = [
            one for one in choices if one.used <= low or (not always[step] and not touched[step] & ~one.alive)
        ] or [_Chosen(0, 0, 0)]  # fmt: skip
        if end[step]:
            choices = _merged([_without(one, end[step], candidates) for one in choices])
    stay, at = list[int](), max(choices, key=lambda one: one.saved) if choices else None
    while at is not None and at.last >= 0:
        stay.append(at.last)
        at = at.before
    return sorted(set(stay))


def _best(choices: list[_Chosen]) -> list[_Chosen]:
    if len(choices) <= _CHOICES:
        return choices
    return sorted(choices, key=lambda one: (-one.saved, one.used))[:_CHOICES]


def _without(one: _Chosen, ended: int, candidates: Sequence[BufferLife]) -> _Chosen:
    """Return ``one`` without those that have ended."""
    gone, size = one.alive & ended, 0
    rest = gone
    while rest:
        low = rest & -rest
        size += candidates[low.bit_length() - 1].size
        rest ^= low
    return _Chosen(one.alive ^ gone, one.used - size, one.saved, one.last, one.before)


def _merged(choices: list[_Chosen]) -> list[_Chosen]:
    """Return of choices with the same alive the one that saves most."""
    best: dict[int, _Chosen] = {}
    for one in choices:
        if one.alive not in best or one.saved > best[one.alive].saved:
            best[one.alive] = one
    return list(best.values())
