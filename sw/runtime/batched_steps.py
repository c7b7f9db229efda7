"""Steps of conversations of one batch, as they come: those that are ready take the next inference together."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, cast

from sw.driver import DriverError
from sw.runtime.conversation_batch import BatchedConversation, Given
from sw.runtime.model_data import Arrays
from sw.runtime.request import Request, RequestCancelled, State


class BatchedStep:
    """A step of one conversation, which ``Runtime.submit_step`` makes; it can be awaited. ``request`` is the inference
    that it shares with steps of other conversations: cycles and preemptions are those of all, and its tag is a list of
    the tags of all that have one."""

    def __init__(self, request: Request, conversation: BatchedConversation, tag: object = None) -> None:
        self.request, self.conversation, self.tag = request, conversation, tag
        self._cancelled = False

    def done(self) -> bool:
        """Return whether the step has ended, well or not."""
        return self._cancelled or self.request.done()

    def exception(self) -> Exception | None:
        """Run until the step is done and return why it failed, or None if it has not."""
        if self._cancelled:
            return RequestCancelled(f"a step of {self.request.name} was cancelled")
        return self.request.exception()

    def result(self) -> Arrays:
        """Run until the step is done and return outputs by name; raises what made it fail, :class:`RequestCancelled` if
        it was."""
        error = self.exception()
        if error is not None:
            raise error
        return self.conversation.part(self.request.result())

    def cancel(self) -> bool:
        """Give the step up. Return False if it was done already, or runs together with others."""
        given = self.request.inputs
        if self.done() or not isinstance(given, dict):
            return False
        if len(given) == 1:
            return self.request.cancel()
        if self.request.state is not State.WAITING or self.request.started is not None:
            return False
        del given[self.conversation]
        tags = cast(list, self.request.tag)
        tags[:] = [tag for tag in tags if tag is not self.tag]
        self._cancelled = True
        return True

    def __await__(self) -> Generator[object, None, Arrays]:
        yield from asyncio.sleep(0).__await__()  # others may have a step to join
        while not self.done():
            self.request.drive()
            yield from asyncio.sleep(0).__await__()
        return self.result()


class BatchedSteps:
    """The inference of each batch that has not begun, which steps may still join. ``accept``: makes a request."""

    def __init__(self, accept: Callable[..., Request], now: Callable[[], int]) -> None:
        self._accept, self._now = accept, now
        self._forming: dict[int, Request] = {}
        self._last: dict[int, BatchedStep] = {}

    def submit(self, conversation: BatchedConversation, inputs: Given, **how: Any) -> BatchedStep:
        """Return a step of ``conversation``, in an inference that is asked for as ``how`` says. Raises
        :class:`InputError` for what it cannot take, :class:`DriverError` while its last step has not ended."""
        if conversation.busy:
            raise DriverError(
                f"a conversation of model {conversation.batch.model.name!r} has a step that has not ended: a step "
                "begins where the last one ended"
            )
        batch, given = conversation.batch, conversation.batch.checked(conversation, inputs)
        self._forming = {key: request for key, request in self._forming.items() if not request.done()}
        request = self._forming.get(id(batch))
        if request is None or not self._may_join(request, how):
            request = self._forming[id(batch)] = self._accept(batch, {}, **how | {"tag": []})
        elif request.deadline is not None:  # a soft one, or that of all
            request.deadline = min(request.deadline, how["deadline"] or request.deadline)
        else:
            request.deadline = how["deadline"]
        if how["tag"] is not None:
            cast(list, request.tag).append(how["tag"])
        request.inputs[conversation] = given  # type: ignore[index]
        step = BatchedStep(request, conversation, how["tag"])
        conversation.busy_until(step.done)
        return step

    def _may_join(self, request: Request, how: dict[str, Any]) -> bool:
        """Return whether a step that is asked for as ``how`` says begins no sooner or later in ``request``."""
        waits = request.state is State.WAITING and not request.ending
        now, arrival = self._now(), int(how["arrival"])
        together = max(request.arrival, now) == max(arrival, now)
        names = ("priority", "soft_deadline", "announced", "stream")
        alike = all(getattr(request, name) == how[name] for name in names)
        ends_alike = request.soft_deadline or request.deadline == how["deadline"]  # a soft one is the earliest of all
        return waits and together and alike and ends_alike
