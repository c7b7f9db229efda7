"""Kernels are added while others match, and made when they are asked for."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hw.image.kernel_attributes import AttributeProblem, KernelAttributes
from sw.kernels import KernelDemand, KernelLibrary, LibraryKernel, NoKernelError, OnDemandKernels

DEMAND = KernelDemand("x", {"head_size": 80}, "sequence")


def kernel(covered, name="k"):
    return LibraryKernel(name, KernelAttributes.of({"head_size": 80}, "sequence", covered), covered)


def test_readers_see_a_library_that_only_grows():
    library, most, threads = KernelLibrary([kernel("..")]), 120, 4
    added = [0] * threads  #: of each writer
    mistakes, matches, done = [], [0], threading.Event()

    def write(number):
        for step in range(most):
            library.add(kernel(step * threads + number + 1))
            added[number] = step + 1

    def read():
        while not done.is_set():
            for number in range(threads):
                before = added[number]
                for step in (0, before // 2, before - 1):
                    value = max(step, 0) * threads + number + 1
                    found = library.match(DEMAND, value).content
                    matches[0] += 1
                    if found != value and (found != ".." or before > max(step, 0)):
                        mistakes.append((value, found))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(threads)))
    done.set()
    for thread in readers:
        thread.join()
    assert not mistakes and matches[0] > 100
    assert len(library) == most * threads + 1
    assert all(library.match(DEMAND, value).content == value for value in range(1, most * threads + 1))


def test_a_kernel_is_made_in_the_background_and_used_from_then_on():
    library, go, made = KernelLibrary(), threading.Event(), []

    def build(demand, value):
        assert go.wait(10)
        made.append(value)
        return kernel(value)

    with OnDemandKernels(library, build) as makers:
        first, second = makers.want(DEMAND, 7), makers.want(DEMAND, 7)
        assert first is second
        with pytest.raises(NoKernelError):
            library.match(DEMAND, 7)
        go.set()
        assert first.result(10) is library.match(DEMAND, 7)
        assert makers.want(DEMAND, 7).result(10) is first.result()  # it is there by now
    assert made == [7]


def test_a_failure_is_that_requests_error():
    library, broken = KernelLibrary([kernel(3)]), [True]

    def build(demand, value):
        if broken[0]:
            raise RuntimeError("no memory")
        return kernel(value)

    with OnDemandKernels(library, build) as makers:
        with pytest.raises(RuntimeError, match="no memory"):
            makers.want(DEMAND, 7).result(10)
        assert library.match(DEMAND, 3).content == 3 and len(library) == 1
        broken[0] = False
        assert makers.want(DEMAND, 7).result(10).content == 7


def test_a_kernel_that_does_not_fit_is_refused():
    library = KernelLibrary()
    with OnDemandKernels(library, lambda demand, value: kernel(value + 1)) as makers:
        with pytest.raises(ValueError, match=r"was made for operation 'x'.*but does not fit"):
            makers.want(DEMAND, 7).result(10)
        with pytest.raises(AttributeProblem):
            makers.want(DEMAND, -1)
    assert not len(library)
