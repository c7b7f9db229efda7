"""Knows how far the loaders of all engines have come."""

from collections.abc import Container, Iterable

from sw.driver import Device, DeviceJob


class Loaders:
    """Looks at the loaders of a device, once until something was queued: each look reads a register of each engine that
    has jobs."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._seen: dict[int, list[DeviceJob]] | None = None

    def forget(self) -> None:
        """Look again when it is asked next."""
        self._seen = None

    def to_load(self, engines: Iterable[int] | None = None) -> dict[int, list[DeviceJob]]:
        """Return the jobs on each of ``engines``, or of all, whose prologue has not run: the loader is at the first."""
        if self._seen is None:
            self._seen = {queue.number: queue.not_loaded() for queue in self._device.engines}
        return self._seen if engines is None else {engine: self._seen[engine] for engine in engines}

    def has_come_to(self, jobs: Container[DeviceJob], engines: Iterable[int] | None = None) -> bool:
        """Return whether the loaders of ``engines``, or all, have come to all of ``jobs``."""
        return not any(job in jobs for waiting in self.to_load(engines).values() for job in waiting[1:])
