"""Train the decoder and write its weights.

    python -m examples.words.train weights.pt

One thread, about a quarter of an hour. The last twentieth of the text is held out, and only measures the result.
"""

import argparse
import math
import time
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from examples.words import CONTEXT, corpus, tokens
from examples.words.network import Decoder

SEED = 1
STEPS = 2200
BATCH = 8  #: windows of `CONTEXT` tokens
LEARNING_RATE = 2e-3
WARM_UP = 200  #: steps
LAST_RATE = 0.05  #: of the learning rate, at the end
WEIGHT_DECAY = 0.1


def train(text: Tensor, held_out: Tensor, steps: int = STEPS) -> Decoder:
    """Minimise the cross-entropy of the next token with AdamW, on windows drawn from the tokens of a text."""
    torch.manual_seed(SEED)
    decoder = Decoder()
    matrices = [weight for weight in decoder.parameters() if weight.dim() == 2]
    vectors = [weight for weight in decoder.parameters() if weight.dim() == 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, LEARNING_RATE, betas=(0.9, 0.95))
    start, mean = time.monotonic(), math.log(tokens.SIZE)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * rate(step, steps)
        begins = torch.randint(len(text) - CONTEXT, (BATCH,))
        windows = torch.stack([text[begin : begin + CONTEXT + 1] for begin in begins])
        loss = cross_entropy(decoder, windows)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        optimiser.step()
        mean += (loss.item() - mean) / 50
        if step % 250 == 249:
            seconds = time.monotonic() - start
            held = perplexity(decoder, held_out)
            print(f"step {step + 1:5}: loss {mean:.3f}, held-out perplexity {held:.2f}, {seconds:.0f} s", flush=True)
    return decoder


def rate(step: int, steps: int) -> float:
    """Warm-up, then half a cosine."""
    progress = step / steps
    return min(1.0, (step + 1) / WARM_UP) * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * progress)) / 2)


def cross_entropy(decoder: Decoder, windows: Tensor) -> Tensor:
    """Mean over all tokens of windows [N, T + 1] but their first."""
    scores = decoder(windows[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def perplexity(decoder: Decoder, text: Tensor) -> float:
    """Of a text, in windows of the context that do not overlap."""
    decoder.eval()
    count = (len(text) - 1) // CONTEXT
    windows = torch.stack([text[CONTEXT * i : CONTEXT * (i + 1) + 1] for i in range(count)])
    result = math.exp(cross_entropy(decoder, windows).item())
    decoder.train()
    return result


def main() -> None:
    """Train, and write the weights."""
    parser = argparse.ArgumentParser(description="train the decoder of words")
    parser.add_argument("output", type=Path, help="file for the weights")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    text, held_out = (torch.tensor(tokens.encode(part)) for part in corpus.split(corpus.text()))
    print(f"{len(text)} tokens to train on, {len(held_out)} held out", flush=True)
    decoder = train(text, held_out, options.steps)
    torch.save(decoder.state_dict(), options.output)


if __name__ == "__main__":
    main()
