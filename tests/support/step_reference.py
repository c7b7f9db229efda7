"""What a conversation gives by the reference, step by step."""

from collections.abc import Sequence

import numpy as np

from compiler import import_model, reference
from tests.support.small_step import KEY_HEADS, SIZE, small_step


def steps_of(tokens: Sequence[int], rows: int) -> list[np.ndarray]:
    """Return ``y`` of each step of the small step model, with memory for ``rows`` of the past."""
    graph = import_model(small_step(), sizes={"past": rows})
    kept = {name: np.zeros((1, KEY_HEADS, rows, SIZE), np.float32) for name in ("past_key", "past_value")}
    found = []
    for at, token in enumerate(tokens):
        given = {"ids": np.array([[token]]), "position": np.array([[at]]), "past": at, **kept}
        made = reference.run(graph, given)
        kept = {"past_key": made["key"][:, :, :rows], "past_value": made["value"][:, :, :rows]}
        found.append(made["y"])
    return found
