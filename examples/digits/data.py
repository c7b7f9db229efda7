"""The digits data set, and the one split of it that every figure in this folder refers to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CLASSES = 10
SPLIT_SEED = 2024
HELD_OUT_FRACTION = 0.2


@dataclass(frozen=True)
class Split:
    """Images are float32 [N, 1, 8, 8] in 0..1 (the data set's 0..16 divided by 16), labels int64 [N]."""

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    held_out_images: NDArray[np.float32]
    held_out_labels: NDArray[np.int64]


def load_split() -> Split:
    """Load scikit-learn's digits (1797 images) and hold out a fifth of each class, always the same images."""
    # Imported here because only training and tests need scikit-learn; running the model does not.
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, np.newaxis]
    labels = digits.target.astype(np.int64)

    rng = np.random.default_rng(SPLIT_SEED)
    held_out = np.zeros(len(labels), dtype=bool)
    for digit in range(CLASSES):
        members = rng.permutation(np.flatnonzero(labels == digit))
        held_out[members[: round(len(members) * HELD_OUT_FRACTION)]] = True
    return Split(images[~held_out], labels[~held_out], images[held_out], labels[held_out])
