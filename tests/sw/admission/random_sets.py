"""Random small sets of streams, and their arrivals in every phase."""

import random
from collections.abc import Iterator

from sw.admission import Arrival, RequestStream, WorkPiece


def some_pieces(rng: random.Random, most: int) -> tuple[WorkPiece, ...]:
    found = [WorkPiece(rng.randint(1, most), rng.randint(0, 4), rng.random() < 0.2) for _ in range(rng.randint(1, 4))]
    return (*found, WorkPiece(rng.randint(1, most)))


def some_streams(rng: random.Random, engines: list[frozenset[int]], most: int = 4) -> list[RequestStream]:
    count = rng.randint(2, most)
    priorities = list(range(count))
    result = []
    for number in range(count):
        work = some_pieces(rng, rng.choice([3, 8]))
        costs = [rng.randint(0, 4) if rng.random() < 0.7 else 0 for _ in range(3)]
        total = sum(piece.cycles for piece in work) + costs[0]
        result.append(
            RequestStream(
                f"s{number}",
                priorities[number],
                rng.randint(total, rng.choice([3, 8]) * total * count),
                work,
                jitter=rng.choice([0, 0, rng.randint(0, 30)]),
                burst=rng.choice([1, 1, 2]),
                engines=rng.choice(engines),
                start=costs[0],
                restore=costs[1],
                refill=costs[2],
            )
        )
    return result


def arrivals(rng: random.Random, stream: RequestStream, until: int) -> list[Arrival]:
    """Return arrivals that the stream may have: sporadic ones, mostly as dense as they can be."""
    first, result, last = rng.randint(0, 4 * stream.period), list[Arrival](), 0
    late, gap = rng.randint(0, 3), rng.choice([0, 0, 3])
    due = [first]
    while due[-1] < until:
        number = len(due)
        earliest = max(due[number - k] + stream.due(k) for k in range(1, number + 1))
        due.append(earliest + (rng.randint(0, gap)))
    for number, cycle in enumerate(due):
        last = max(last, cycle + (stream.jitter if number == late else rng.choice([0, stream.jitter])))
        result.append(Arrival(cycle, min(last, cycle + stream.jitter)))
    return result


def storms(rng: random.Random, streams: list[RequestStream], count: int) -> Iterator[dict[str, list[Arrival]]]:
    until = 6 * max(stream.period for stream in streams)
    for _ in range(count):
        yield {stream.name: arrivals(rng, stream, until) for stream in streams}
