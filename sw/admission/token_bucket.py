"""Lets requests of a stream in at the rate which the response-time analysis counts with, however they come."""


class TokenBucket:
    """Says when each request of a stream is let in: at once, or, if it comes sooner than the stream may send it, as
    soon as it may.

    Parameters
    ----------
    period, burst, jitter : as of a ``RequestStream``, in cycles

    Tokens come one each ``period``, and ``burst + jitter / period`` of them, parts included, are kept at the most. So
    in an interval of n cycles, both ends included, no more than ``burst + (n + jitter) // period`` requests are let in,
    which is what ``RequestStream.released_until`` counts with; and no request is held back whose stream has kept to
    period, burst and jitter. The tokens are not counted but kept as a time, when the next request would come if each
    came a period after the one before it (the *virtual scheduling* of ITU-T I.371), so that all is exact.

    Raises ``ValueError`` for a period or a burst below 1, or a jitter below 0.
    """

    def __init__(self, period: int, burst: int = 1, jitter: int = 0) -> None:
        if period < 1 or burst < 1 or jitter < 0:
            raise ValueError(
                f"period {period} and burst {burst} must be at least 1 and jitter {jitter} at least 0; change them"
            )
        self._period, self._ahead = period, (burst - 1) * period + jitter
        self._next: int | None = None  #: when the next request would come at an even rate
        self._last = 0  #: when the latest was let in

    def admit(self, cycle: int) -> int:
        """Return the cycle at which a request is let in that comes at ``cycle``. Requests are let in in the order in
        which they are admitted, so one that comes sooner than the one before it waits for that."""
        if self._next is None:
            at = self._next = cycle
        else:
            at = max(cycle, self._last, self._next - self._ahead)
        self._next, self._last = max(at, self._next) + self._period, at
        return at
