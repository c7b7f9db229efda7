"""Names each delay that a stream can meet, one by one: what the response-time analysis adds up.

A request that is pending is kept from its engines by less urgent ones, until they have stopped and are off
(:meth:`Delays.blocking`), and by more urgent ones. Each of these computes, and costs a switch there and back
(:meth:`Delays.switch`).

If all streams of a device want the same engines, that is all (Bril, Lukkien, Verhaegh, *Worst-case response time
analysis of real-time tasks under fixed-priority scheduling with deferred preemption*, Real-Time Systems 42, 2009).
Otherwise less urgent requests may begin on some of the engines while a more urgent one holds others, and they stand in
the way again when it has ended (:meth:`Delays.gang`); and a request that was suspended may come back without a new
arrival (:meth:`Delays.returns`).
"""

from collections.abc import Sequence
from functools import lru_cache

from sw.admission.streams import RequestStream


class Delays:
    """Finds the delays of ``streams``, in cycles.

    ``section``: the longest time for which the host can do something else before it looks at an arrival.
    """

    def __init__(self, streams: Sequence[RequestStream], section: int = 0) -> None:
        self.streams, self.section = tuple(streams), section
        self.returns = lru_cache(maxsize=None)(self._returns)

    # -- who is in whose way -----------------------------------------------------------------------------------
    def more_urgent(self, stream: RequestStream) -> list[RequestStream]:
        """Return streams that are more urgent than ``stream``."""
        return [other for other in self.streams if other.priority > stream.priority]

    def less_urgent(self, stream: RequestStream) -> list[RequestStream]:
        """Return streams that are less urgent and want some of its engines."""
        return [other for other in self._rivals(stream) if other.priority < stream.priority]

    def equals(self, stream: RequestStream) -> list[RequestStream]:
        """Return other streams of its priority that want some of its engines."""
        return [other for other in self._rivals(stream) if other.priority == stream.priority]

    def _rivals(self, stream: RequestStream) -> list[RequestStream]:
        return [other for other in self.streams if other is not stream and other.engines & stream.engines]

    def alike(self, stream: RequestStream) -> bool:
        """Return whether all streams that have to do with ``stream``, or with one that has, want the same engines."""
        return all(other.engines == stream.engines for other in self._rivals(stream))

    def together(self, stream: RequestStream) -> list[RequestStream]:
        """Return the more urgent streams whose requests can cost ``stream`` time, directly or through others."""
        near, seen = [stream], {stream}
        while near:
            found = set(self._rivals(near.pop())) - seen
            near, seen = [*near, *found], seen | found
        return [other for other in self.more_urgent(stream) if other in seen]

    # -- by less urgent streams --------------------------------------------------------------------------------
    def under_way(self, stream: RequestStream) -> int:
        """Return how long what the host has begun for ``stream`` goes on before it computes: a restore, or a start."""
        return max(stream.restore, stream.start)

    def blocking(self, stream: RequestStream) -> int:
        """Return how long less urgent requests can keep ``stream`` from its engines."""
        return self._by(self.less_urgent(stream))

    def _by(self, lower: Sequence[RequestStream]) -> int:
        return self.section + max((self.under_way(k) + k.halt_and_dump for k in lower), default=0) + self._side(lower)

    def _side(self, lower: Sequence[RequestStream]) -> int:
        """Return what is added where less urgent requests stand side by side: the host takes them off one by one."""
        if all(one.engines & other.engines for one in lower for other in lower):
            return 0
        return sum(stream.dump for stream in lower)

    # -- by more urgent streams --------------------------------------------------------------------------------
    def switch(self, stream: RequestStream, urgent: RequestStream) -> int:
        """Return what a request of ``urgent`` costs beside its own time: whoever it interrupts, of those that are at
        least as urgent as ``stream``, is dumped, comes back, and does some work again."""
        victims = [k for k in self.streams if stream.priority <= k.priority < urgent.priority]
        costs = [k.dump + k.restore + k.refill for k in victims if k.engines & urgent.engines]
        return max(costs, default=0) if self.alike(stream) else sum(costs)

    def lateness(self, stream: RequestStream, urgent: RequestStream, response: int) -> int:
        """Return how late after it is due a request of ``urgent`` can come in the way of ``stream``: as late as it is
        released, or, where others that ``stream`` does not meet may have held it up, as its worst ``response``."""
        return urgent.jitter if self.alike(stream) else response

    def each(self, stream: RequestStream, urgent: RequestStream) -> int:
        """Return all that one request of ``urgent`` can cost ``stream``."""
        met = bool(urgent.engines & stream.engines)
        if met and self.alike(stream):
            return self.own(urgent) + self.switch(stream, urgent)
        return (self.own(urgent) if met else 0) + self._comings(stream, urgent)

    def _comings(self, stream: RequestStream, urgent: RequestStream) -> int:
        """Return what beginnings and returns cost ``stream`` that one request of ``urgent`` is the cause of."""
        total = 0
        for other in self.more_urgent(stream):
            count = self.returns(stream, other).get(urgent, 0) if other.engines & stream.engines else 0
            there = 0 if other is urgent else self.switch(stream, urgent)
            total += count * (self.switch(stream, other) + self.gang(stream, other) + there)
        return total

    def on_cpu(self, stream: RequestStream) -> int:
        """Return how long a request waits for the CPU, where each of its steps finds one of each other stream before
        it."""
        longest = [max(other.cpu_steps, default=0) for other in self.streams if other is not stream]
        return len(stream.cpu_steps) * sum(longest)

    def own(self, stream: RequestStream) -> int:
        """Return what a request takes that nobody interrupts or blocks."""
        return stream.start + stream.computing + self.on_cpu(stream)

    # -- where streams want different engines --------------------------------------------------------------------
    def gang(self, stream: RequestStream, urgent: RequestStream) -> int:
        """Return what a beginning or a return of ``urgent`` costs beyond a switch, if engines differ.

        Less urgent requests may be in the way of ``urgent`` on engines of its own, of ``stream`` once ``urgent`` has
        ended, and of each that is between both in priority and that ``urgent`` interrupts.
        """
        between = [k for k in self.more_urgent(stream) if k.priority < urgent.priority and k.engines & stream.engines]
        waits = [one for one in (urgent, *between) if not stream.engines >= one.engines]
        again = 0 if urgent.engines >= stream.engines else self.blocking(stream)
        return again + sum(self._kept(one, stream) for one in waits)

    def _kept(self, urgent: RequestStream, stream: RequestStream) -> int:
        """Return how long less urgent requests keep ``urgent``, ``stream`` left out: what that does is its own work."""
        return self._by([one for one in self.less_urgent(urgent) if one is not stream])

    def _returns(self, stream: RequestStream, urgent: RequestStream) -> dict[RequestStream, int]:
        """Return for ``urgent`` how often it can begin or return ahead of ``stream``, for each request of a stream.

        It begins once for each of its own. It returns when what had suspended it has ended; ``stream`` may have begun
        meanwhile only if that wanted none of its engines.
        """
        counts = {urgent: 1}
        for other in self.more_urgent(urgent):
            if other.engines & urgent.engines and not other.engines & stream.engines:
                for cause, count in self.returns(urgent, other).items():
                    counts[cause] = counts.get(cause, 0) + count
        return counts
