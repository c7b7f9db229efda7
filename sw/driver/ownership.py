"""Decides who uses a device: one run time or session at a time, from one thread at a time."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import ReferenceType, WeakValueDictionary, finalize, ref

from hw.contract.bus import Bus
from sw.driver.errors import DriverError

_DRIVERS: WeakValueDictionary[int, "Ownership"] = (
    WeakValueDictionary()
)  #: by id of the bus, which its owner keeps alive
_WITH_TENANTS: set[int] = set()  #: ids of buses of which a driver had models of tenants, until they are gone


class Ownership:
    """Knows the owner of one device. Everything that queues jobs claims the device first, so nobody gets the result of
    another.

    ``models``: how many the driver has loaded; while there are any, a second driver of the ``bus`` is a
    :class:`DriverError`, as it would give the same memory and the same rings away again. ``inherited``: an earlier
    driver of the bus, in this process, had models of tenants, who may have left something.
    """

    def __init__(self, bus: Bus) -> None:
        self.models = 0
        before = _DRIVERS.get(id(bus))
        if before is not None and before.models:
            del before  # one that nobody holds any more may still wait for the collector
            gc.collect()
            before = _DRIVERS.get(id(bus))
        if before is not None and before.models:
            raise DriverError(
                f"this bus has a driver already, with {before.models} models: use that, or unload them first"
            )
        _DRIVERS[id(bus)] = self
        self._bus = bus
        self.inherited = id(bus) in _WITH_TENANTS
        self._lock = threading.Lock()
        self._owner: ReferenceType[object] | None = None
        self._name = ""
        self._closed = False
        self._thread: int | None = None
        self._depth = 0  #: of calls of that thread

    def has_tenants(self) -> None:
        """Remember that a model of a tenant was loaded, so that a later driver of the bus is told."""
        if id(self._bus) not in _WITH_TENANTS:
            _WITH_TENANTS.add(id(self._bus))
            finalize(self._bus, _WITH_TENANTS.discard, id(self._bus))

    def refuse_superseded(self) -> None:
        """Raise :class:`DriverError` if another driver was made for the bus since."""
        if _DRIVERS.get(id(self._bus)) is not self:
            raise DriverError("another driver was opened for this bus, which has the device now: use that")

    def claim(self, owner: object, name: str) -> None:
        """Let ``owner``, called ``name`` in messages, use the device until :meth:`release`; raises :class:`DriverError`
        while another does, or while :meth:`abandoned`. The owner may claim it again, and does not live for it."""
        with self._lock:
            if self._owner is not None and self._owner() is not owner:
                raise DriverError(
                    f"{self._name} uses this device, so {name} cannot: wait until it is done, close it, or open "
                    "another device"
                )
            self._owner, self._name = ref(owner), name

    def release(self, owner: object) -> None:
        """End the claim of ``owner``, which has no jobs any more; do nothing if it is not the owner."""
        with self._lock:
            if self._owner is not None and self._owner() is owner:
                self._owner = None

    def abandoned(self, claimant: object = None) -> bool:
        """Return whether the owner, if that is not the ``claimant``, is gone without a :meth:`release`: its jobs are
        nobody's."""
        if self._owner is None or (claimant is not None and self._owner() is claimant):
            return False
        gc.collect()  # one that nobody holds any more may still wait for the collector
        return self._owner() is None

    def cleared(self) -> None:
        """Forget the owner, as nothing is left of what it had."""
        with self._lock:
            self._owner = None

    def close(self) -> None:
        """Close the device for good; raises :class:`DriverError` within a call that uses it."""
        with self._lock:
            if self._depth:
                raise DriverError("this device is in use by the call that closes it: close it when that has returned")
            self._closed = True

    @property
    def closed(self) -> bool:
        """Return whether the device was closed."""
        return self._closed

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Refuse calls from other threads with a :class:`DriverError` while this lasts, and this one once the device is
        closed."""
        me = threading.get_ident()
        with self._lock:
            if self._closed:
                raise DriverError("this device was closed: open another")
            if self._depth and self._thread != me:
                raise DriverError(
                    "another thread uses this device: use a device from one thread at a time, or open one for each"
                )
            self._thread = me
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
