"""Makes kernels in the background when they are asked for."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from hw.image import check_class_2
from sw.kernels.demand import KernelDemand
from sw.kernels.kernel_library import KernelLibrary, LibraryKernel

Content = TypeVar("Content")
Build = Callable[[KernelDemand, int], LibraryKernel[Content]]


class OnDemandKernels(Generic[Content]):
    """Makes kernels with ``build`` in ``threads`` threads of its own and adds them to ``library``, where requests find
    them from then on. A context manager: at its end what has not begun is given up."""

    def __init__(self, library: KernelLibrary[Content], build: Build[Content], threads: int = 1) -> None:
        self._library, self._build = library, build
        self._pool = ThreadPoolExecutor(threads, "kernel")
        self._lock = threading.Lock()
        self._wanted: dict[tuple[str, int], Future[LibraryKernel[Content]]] = {}

    def want(self, demand: KernelDemand, value: int) -> "Future[LibraryKernel[Content]]":
        """Return a future of the kernel for exactly ``value``. Who asks for one that is being made gets the same
        future. Its error is theirs alone: whoever asks afterwards starts again."""
        wanted = (demand.key, check_class_2(value, demand.parameter))
        with self._lock:
            if wanted not in self._wanted:
                self._wanted[wanted] = self._pool.submit(self._make, demand, value)
            return self._wanted[wanted]

    def close(self) -> None:
        """Wait for what is being made, give the rest up."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> "OnDemandKernels[Content]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make(self, demand: KernelDemand, value: int) -> LibraryKernel[Content]:
        try:
            found = self._library.find(demand, value)
            if found is not None and found.attributes.covered.exact:  # it was asked for just before it was ready
                return found
            made = self._build(demand, value)
            if made.attributes.key != demand.key or not made.attributes.covered.covers(value):
                raise ValueError(f"kernel {made} was made for {demand} at {demand.parameter} {value}, but does not fit")
            self._library.add(made)
            return made
        finally:
            with self._lock:
                self._wanted.pop((demand.key, value), None)
