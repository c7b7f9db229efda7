"""Random images with the spectrum of natural ones: neighbouring pixels resemble each other."""

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.layers import Shape


def image(shape: Shape, seed: int | tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Return an image [1, channels, height, width] with mean 0 and standard deviation 1: equal noise at every octave.

    White noise would not do: every image has the same statistics, and pooling makes all results alike.
    """
    rng = np.random.default_rng(seed)
    channels, height, width = shape
    total = np.zeros(shape, np.float32)
    block = 1
    while block <= max(height, width):
        coarse = (channels, -(-height // block), -(-width // block))
        noise = rng.standard_normal(coarse, np.float32)
        total += noise.repeat(block, 1).repeat(block, 2)[:, :height, :width]
        block *= 2
    total -= total.mean()
    return (total / total.std())[np.newaxis]
