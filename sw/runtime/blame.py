"""Tells whose error an exception is: that of one request, which ends with it while others go on."""

from collections.abc import Iterator
from contextlib import contextmanager

from sw.driver import DeviceFault, DeviceTimeout
from sw.runtime.request import Request


class Blamed(Exception):
    """Says that ``error`` is that of ``request`` alone."""

    def __init__(self, request: Request, error: Exception) -> None:
        super().__init__(f"request {request.number}: {error}")
        self.request, self.error = request, error


@contextmanager
def blaming(request: Request) -> Iterator[None]:
    """Blame ``request`` alone for errors. Faults and time-outs of the device pass: they say themselves whose they
    are."""
    try:
        yield
    except (Blamed, DeviceFault, DeviceTimeout):
        raise
    except Exception as error:
        raise Blamed(request, error) from error
