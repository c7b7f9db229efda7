"""Holds the requests of a run time to what its certificate was computed from: which streams there are, what runs them,
how often they come, and how urgent they are (**Policing**)."""

from collections.abc import Mapping

from sw.admission import Admission, RequestStream, TokenBucket
from sw.driver import LoadedModel
from sw.runtime.preemption_mechanism import Mechanism, Situation

_ENGINES = "models run on the engines that they are loaded for"
_ONE_BY_ONE = "the host decides on one layer at a time"
_DUMPED = "who is in the way is dumped"
#: Options of a run time that have no place beside a certificate, and why.
_OF_RUN_TIMES = {
    "policy": "layers run first come, first served", "placement": _ENGINES, "placed": _ENGINES,
    "initial_waits": _ENGINES, "at_arrival": _ONE_BY_ONE, "layers_per_decision": _ONE_BY_ONE,
    "ahead": "bounds are for as many jobs ahead as an engine has slots", "rule": _DUMPED, "may_kill": _DUMPED,
}  # fmt: skip
#: Likewise of a request.
_OF_REQUESTS = {
    "priority": "the priority of a request is that of its stream", "engines": _ENGINES,
    "announced": "nobody is suspended before a request comes",
    "deadline": "nothing is aborted at a deadline (soft_deadline=True)",
}  # fmt: skip


def refuse_beside_certificate(**given: bool) -> None:
    """Raise ``ValueError`` for options of a run time that were ``given`` and contradict its certificate."""
    _refuse(_OF_RUN_TIMES, given)


def refuse_with_stream(**given: bool) -> None:
    """Raise ``ValueError`` for options of a request that were ``given`` and contradict the certificate."""
    _refuse(_OF_REQUESTS, given)


def _refuse(reasons: Mapping[str, str], given: Mapping[str, bool]) -> None:
    wrong = {name: reasons[name] for name, is_given in given.items() if is_given}
    if wrong:
        told = "; ".join(dict.fromkeys(wrong.values()))
        raise ValueError(f"a certificate takes for granted that {told}: leave {', '.join(wrong)} out")


def always_dump(situation: Situation) -> Mechanism:
    """Return what certificates count with: who is in the way is suspended at its next cancellation point."""
    return Mechanism.DUMP


class AdmittedStreams:
    """Lets requests of the streams of ``admission`` in. One that comes sooner than its stream may send it waits, at the
    cost of its own stream alone. A stream of which a request has failed is *demoted*: below everybody from then on.

    Raises ``ValueError`` if a stream was refused.
    """

    def __init__(self, admission: Admission) -> None:
        if refused := [response.stream.name for response in admission.refused]:
            raise ValueError(
                f"the certificate refuses {', '.join(refused)}; Certificate.remedies says what mends that, and what it "
                "refuses is not run under it"
            )
        self._streams = {stream.name: stream for stream in admission.streams}
        self._buckets = {
            name: TokenBucket(stream.period, stream.burst, stream.jitter)
            for name, stream in self._streams.items()
            if stream.period is not None
        }
        self._models: dict[str, LoadedModel] = {}
        self._demoted: set[str] = set()
        self.lowest = min(stream.priority for stream in admission.streams) - 1  #: priority of those that were demoted

    @property
    def demoted(self) -> frozenset[str]:
        """Return the streams of which a request has failed."""
        return frozenset(self._demoted)

    def checked(self, name: str | None, model: LoadedModel) -> str:
        """Return ``name``. Raises ``ValueError`` unless it is a stream which ``model`` may run."""
        if name is None or name not in self._streams:
            raise ValueError(
                f"{'no stream' if name is None else f'stream {name!r}'}: a run time with a certificate serves what "
                f"that was computed for; give stream=..., one of {', '.join(self._streams)}"
            )
        before = self._models.get(name)
        if before is not None and before is not model and before.loaded:
            raise ValueError(f"stream {name!r} runs {before.name!r}, loaded once; it cannot run {model.name!r}, too")
        users = [other for other, used in self._models.items() if used is model and other != name]
        if users:
            raise ValueError(f"model {model.name!r} runs stream {users[0]!r}; load it again for stream {name!r}")
        self._check_engines(self._streams[name], model)
        return name

    def let_in(self, name: str, model: LoadedModel, cycle: int) -> tuple[int, int]:
        """Return the cycle at which a request of stream ``name`` is let in that comes at ``cycle``, and its priority;
        ``model`` runs the stream from now on."""
        self._models[name] = model
        bucket = self._buckets.get(name)
        priority = self.lowest if name in self._demoted else self._streams[name].priority
        return cycle if bucket is None else bucket.admit(cycle), priority

    def demote(self, name: str) -> None:
        """Let stream ``name`` be best effort from now on."""
        self._demoted.add(name)

    def _check_engines(self, stream: RequestStream, model: LoadedModel) -> None:
        if not set(model.engines) <= stream.engines:
            raise ValueError(
                f"model {model.name!r} is loaded for engines {list(model.engines)}, and stream {stream.name!r} was "
                f"admitted on {sorted(stream.engines)}; load it for those"
            )
