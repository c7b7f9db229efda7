"""Writes outputs of a run to a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray]


def joined(outputs: Sequence[Arrays]) -> Arrays:
    """Return the outputs of all samples in one array by name: along the first axis where it is a batch of 1, along a
    new first axis otherwise. One sample stays as it is."""
    if len(outputs) == 1:
        return dict(outputs[0])
    return {
        name: (np.concatenate if value.ndim and value.shape[0] == 1 else np.stack)([one[name] for one in outputs])
        for name, value in outputs[0].items()
    }


def save_outputs(path: Path, outputs: Sequence[Arrays]) -> None:
    """Write an .npz file with an array for each output, as :func:`joined` makes it."""
    with path.open("wb") as file:
        np.savez(file, **joined(outputs))  # type: ignore[arg-type]
