"""The decoder in PyTorch, shaped like Llama: RMS norms, rotary positions, grouped queries, SwiGLU.

    embed vocabulary→D
    4 layers of
        RMS norm, attention of 4 heads that share 2 of keys and values, add
        RMS norm, D→HIDDEN twice, silu of one times the other, HIDDEN→D, add
    RMS norm, D→vocabulary

``Decoder`` scores whole texts, for training. ``Step`` scores one token after a past of any length, for export.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from examples.words import CONTEXT
from examples.words.tokens import SIZE

WIDTH = 128
LAYERS = 4
HEADS = 4
KEY_HEADS = 2
HEAD = WIDTH // HEADS
HIDDEN = 384
DROPPED = 0.25  #: of what a layer adds, in training
ROTATION = 10_000.0  #: base of the angles of rotary positions

State = tuple[Tensor, Tensor]  #: keys and values of a layer, each [N, key heads, tokens, head size]


class Decoder(nn.Module):
    """Tokens [N, T] → the scores of each next one [N, T, vocabulary]."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(SIZE, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.head = nn.Linear(WIDTH, SIZE, bias=False)
        angles = torch.outer(torch.arange(CONTEXT), ROTATION ** (-torch.arange(0, HEAD, 2) / HEAD))
        self.register_buffer("cos", torch.cat((angles, angles), 1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat((angles, angles), 1).sin(), persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                added = name.endswith(("output.weight", "contract.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * LAYERS) ** 0.5 if added else 0.04)

    def forward(self, ids: Tensor) -> Tensor:
        x = functional.dropout(self.embed(ids), DROPPED, self.training)
        for layer in self.layers:
            x = layer(x, self.cos[: ids.shape[1]], self.sin[: ids.shape[1]])
        return self.head(self.norm(x))


class Step(nn.Module):
    """One token: ids [1, 1], its position [1, 1], then the past keys and values of each layer.

    Returns the scores [1, 1, vocabulary], then what each past becomes: itself and the row of this token.
    """

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, ids: Tensor, position: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        decoder = self.decoder
        x = decoder.embed(ids)
        cos, sin = (functional.embedding(position, table) for table in (decoder.cos, decoder.sin))
        present: list[Tensor] = []
        for layer, keys, values in zip(decoder.layers, past[::2], past[1::2], strict=True):
            x, *state = layer.step(x, cos, sin, (keys, values))
            present += state
        return decoder.head(decoder.norm(x)), *present


class Layer(nn.Module):
    """Attention, then SwiGLU; what they compute is added to their input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(WIDTH, eps=1e-5)
        self.query = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.key = nn.Linear(WIDTH, KEY_HEADS * HEAD, bias=False)
        self.value = nn.Linear(WIDTH, KEY_HEADS * HEAD, bias=False)
        self.output = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.norm2 = nn.RMSNorm(WIDTH, eps=1e-5)
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.expand = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.contract = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        query, key, value = self.projected(self.norm1(x), cos, sin)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.added(x, mixed.transpose(1, 2).flatten(2))

    def step(self, x: Tensor, cos: Tensor, sin: Tensor, past: State) -> tuple[Tensor, Tensor, Tensor]:
        """One token after `past`: x [1, 1, D] → its result, and the keys and values with its own.

        The heads that share keys are rows of one product.
        """
        query, key, value = self.projected(self.norm1(x), cos, sin)
        keys, values = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        grouped = query.reshape(1, KEY_HEADS, HEADS // KEY_HEADS, HEAD)
        products = grouped @ keys.transpose(2, 3) * HEAD**-0.5
        mixed = products.softmax(-1) @ values
        return self.added(x, mixed.reshape(1, 1, HEADS * HEAD)), keys, values

    def projected(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value [N, heads, T, head size], with the first two rotated by their positions."""
        query, key, value = (
            project(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        return rotated(query, cos, sin), rotated(key, cos, sin), value

    def added(self, x: Tensor, mixed: Tensor) -> Tensor:
        """The residual stream after attention and SwiGLU."""
        x = x + functional.dropout(self.output(mixed), DROPPED, self.training)
        normal = self.norm2(x)
        hidden = functional.silu(self.gate(normal)) * self.expand(normal)
        return x + functional.dropout(self.contract(hidden), DROPPED, self.training)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Each half of a head turned against the other by the angles of its position."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin
