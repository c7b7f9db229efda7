"""Searches for priorities with which every stream keeps its promise."""

from collections.abc import Sequence
from dataclasses import replace

from sw.admission import RequestStream, responses


def searched(streams: Sequence[RequestStream], section: int) -> list[RequestStream]:
    """Return ``streams`` with priorities by which all keep their promises, or by deadline if none are found.

    The lowest place goes to a stream that keeps its promise there, whoever comes above it, and so on upwards (Audsley,
    *On priority assignment in fixed priority scheduling*, Information Processing Letters 79, 2001). What a switch costs
    depends on the order above, which that does not look at: so an order is missed now and then, and none is wrong,
    as the certificate is computed from what was found. Streams without a promise stay below all others.
    """
    loose = [stream for stream in streams if not stream.promised]
    left = sorted((stream for stream in streams if stream.promised), key=_deadline)
    place = 1 + max((stream.priority for stream in loose), default=0)
    order = list[RequestStream]()
    while left:
        lowest = next((one for one in reversed(left) if _kept(one, left, order, loose, section)), left[-1])
        left.remove(lowest)
        order.append(lowest)
    chosen = {stream.name: replace(stream, priority=place + number) for number, stream in enumerate(order)}
    return [chosen.get(stream.name, stream) for stream in streams]


def _deadline(stream: RequestStream) -> float:
    return float("inf") if stream.deadline is None else stream.deadline


def _kept(
    lowest: RequestStream, left: Sequence[RequestStream], order: Sequence[RequestStream],
    loose: Sequence[RequestStream], section: int,
) -> bool:  # fmt: skip
    """Return whether ``lowest`` keeps its promise below all others of ``left``, those by deadline, and above
    ``order``."""
    above = [one for one in left if one is not lowest]
    base = 1 + max((stream.priority for stream in loose), default=0)
    ranked = [*order, lowest, *reversed(above)]
    everyone = [*loose, *(replace(one, priority=base + number) for number, one in enumerate(ranked))]
    return next(found for found in responses(everyone, section) if found.stream.name == lowest.name).accepted
