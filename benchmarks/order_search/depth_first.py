"""Orders that follow one branch after the other, which searches are measured by."""

from collections.abc import Iterator

from compiler import Order, OrderGraph


def depth_first(graph: OrderGraph) -> Iterator[Order]:
    """Yield the orders that follow a branch to where it meets another before they begin the next: of the operators that
    may come next, one that reads the latest result is taken first. All such orders, each once."""
    prefix: list[int] = []

    def extended(done: int) -> Iterator[Order]:
        if len(prefix) == len(graph):
            yield tuple(prefix)
            return
        ready = graph.ready(done)
        for latest in reversed(prefix):
            deepest = [number for number in ready if (graph.predecessors[number] >> latest) & 1]
            if deepest:
                ready = deepest
                break
        for number in ready:
            prefix.append(number)
            yield from extended(done | 1 << number)
            prefix.pop()

    return extended(0)
