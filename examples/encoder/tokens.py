"""Images as sequences: one token for each pixel that is not blank, so that the length differs from image to image."""

from collections.abc import Iterable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

SIDE = 8  #: rows and columns of an image
PATCH = 3  #: rows and columns of what a token sees of the image
FEATURES = 2 * SIDE + PATCH * PATCH
LEVELS = 16  #: of darkness, beside blank

Tokens = NDArray[np.float32]


def tokens_of(image: NDArray[np.float32]) -> Tokens:
    """The tokens [L, 25] of an image [1, 8, 8] with pixels in 0..1, row by row from the top.

    A token is the pixel's row and its column, each as one of eight, and how dark it and its eight neighbours are.
    """
    (plane,) = image
    rows, columns = np.nonzero(plane)
    one_of = np.eye(SIDE, dtype=np.float32)
    patches = sliding_window_view(np.pad(plane, PATCH // 2), (PATCH, PATCH))[rows, columns]
    return np.concatenate([one_of[rows], one_of[columns], patches.reshape(len(rows), -1)], axis=1)


def sequences(images: Iterable[NDArray[np.float32]]) -> list[Tokens]:
    """The tokens of each image."""
    return [tokens_of(image) for image in images]
