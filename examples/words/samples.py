"""Write the tokens that tests and calibration need, whatever text the Python that runs them has.

    python -m examples.words.samples prompts.npz

Writes `words_samples.npz` with the held-out tokens, and a file with sequences that ranges of activations are found
with: `ids` int64 [samples, length], all from the text that is trained on.
"""

import argparse
from pathlib import Path

import numpy as np

from examples.words import CONTEXT, SAMPLES, corpus, tokens

SEQUENCES = 16


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description="write held-out and calibration tokens")
    parser.add_argument("prompts", type=Path, help="file for the calibration sequences")
    options = parser.parse_args()
    text, held_out = (np.array(tokens.encode(part)) for part in corpus.split(corpus.text()))
    np.savez_compressed(SAMPLES, held_out=held_out.astype(np.uint16))
    begins = np.linspace(0, len(text) - CONTEXT, SEQUENCES).astype(int)
    np.savez(options.prompts, ids=np.stack([text[begin : begin + CONTEXT] for begin in begins]))


if __name__ == "__main__":
    main()
