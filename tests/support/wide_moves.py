"""Tensors of a random graph under construction, and the operators that only move values."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.support.onnx_models import Net

LARGEST = 3000  #: elements of a tensor
_NEAR = 5  #: tensors among which an operator mostly finds its inputs
_SPREAD = 74  #: of an input's stored values, in steps


@dataclass(frozen=True)
class Stored:
    """An 8-bit tensor: how it is stored, and the spread that its real values are expected to have."""

    shape: tuple[int, ...]
    scale: float
    zero: int
    spread: float


class MovingGraph:
    """A net under construction. ``tensors``: 8-bit tensors by name; ``read``: those that something reads."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 77])
        self.dtype = str(self.rng.choice(["int8", "uint8"]))
        self.net = Net(opset=17, seed=seed)
        self.tensors: dict[str, Stored] = {}
        self.read: set[str] = set()
        for number in range(self.number(1, 2)):
            shape = (1, self.number(1, 12), self.number(3, 15), self.number(3, 15))
            if self.chance(0.2):
                shape = shape[:1] + shape[2:] if self.chance(0.5) else (shape[2], shape[3])  # type: ignore[assignment]
            scale = float(np.float32(self.rng.uniform(0.01, 0.1)))
            name = self.net.input(shape, self.dtype, f"x{number}")
            self.tensors[name] = Stored(shape, scale, self.zero(), _SPREAD * scale)

    # -- choices -------------------------------------------------------------------------------------------------
    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def zero(self) -> int:
        return (0 if self.dtype == "int8" else 128) + self.number(-30, 30)

    def pick(self, fits: Callable[[Stored], bool] = lambda stored: True) -> str | None:
        """A tensor that ``fits``, mostly one of the last; None if there is none."""
        names = [name for name, stored in self.tensors.items() if fits(stored)]
        near = names[-_NEAR:] if self.chance(0.8) else names
        return str(self.rng.choice(near)) if near else None

    def real(self, name: str) -> str:
        self.read.add(name)
        stored = self.tensors[name]
        return self.net.dq(name, stored.scale, stored.zero, self.dtype)

    def store(self, real: str, shape, spread: float, like: str | None = None, *, clamp: bool = True) -> None:
        """Store a real result, sometimes as ``like`` is, sometimes behind a Relu."""
        if clamp and like is None and self.chance(0.25):
            real = self.net.node("Relu", [real])
        if like is not None and self.chance(0.6):
            scale, zero = self.tensors[like].scale, self.tensors[like].zero
        else:
            scale, zero = float(np.float32(max(spread, 1e-3) * self.rng.uniform(1.5, 4) / 127)), self.zero()
        name = self.net.q(real, scale, zero, self.dtype)
        self.tensors[name] = Stored(tuple(int(n) for n in shape), scale, zero, min(spread, 74 * scale))

    # -- operators -----------------------------------------------------------------------------------------------
    def concat(self) -> None:
        x = self.pick()
        shape, axis = self.tensors[x].shape, self.number(0, len(self.tensors[x].shape) - 1)

        def fits(stored: Stored) -> bool:
            own = stored.shape
            return len(own) == len(shape) and own[:axis] + own[axis + 1 :] == shape[:axis] + shape[axis + 1 :]

        names = [x, *(self.pick(fits) for _ in range(self.number(1, 2)))]
        total = sum(self.tensors[name].shape[axis] for name in names)
        joined = (*shape[:axis], total, *shape[axis + 1 :])
        if math.prod(joined) > LARGEST:
            return
        y = self.net.node("Concat", [self.real(name) for name in names], axis=axis)
        self.store(y, joined, max(self.tensors[name].spread for name in names), x)

    def split(self) -> None:
        """Parts, of which some may be read by nobody and are no outputs."""
        x = self.pick(lambda stored: max(stored.shape) > 2)
        if x is None:
            return
        stored = self.tensors[x]
        axis = int(np.argmax(stored.shape))
        first = self.number(1, stored.shape[axis] - 1)
        sizes = [first, stored.shape[axis] - first]
        if sizes[1] > 2 and self.chance(0.3):
            sizes[1:] = [1, sizes[1] - 1]
        self.net.node(
            "Split", [self.real(x), self.net.const(np.array(sizes, np.int64))], outputs=len(sizes),
            axis=axis if self.chance(0.5) else axis - len(stored.shape),
        )  # fmt: skip
        parts = list(self.net.nodes[-1].output)
        kept = [number for number in range(len(parts)) if self.chance(0.8)] or [0]
        for number in kept:
            self.store(
                parts[number], (*stored.shape[:axis], sizes[number], *stored.shape[axis + 1 :]), stored.spread, x
            )

    def cut(self) -> None:
        x = self.pick()
        stored = self.tensors[x]
        shape, bounds = list(stored.shape), []
        for axis in range(len(shape)):
            if shape[axis] > 1 and self.chance(0.5):
                first, step = self.number(0, shape[axis] - 1), self.number(1, 2)
                end = self.number(first + 1, shape[axis])
                bounds.append((first, end, axis, step))
                shape[axis] = -(-(end - first) // step)
        if bounds:
            columns = [self.net.const(np.array(column, np.int64)) for column in zip(*bounds, strict=True)]
            self.store(self.net.node("Slice", [self.real(x), *columns]), shape, stored.spread, x)

    def reshape(self) -> None:
        x = self.pick()
        shape = self.tensors[x].shape
        size = math.prod(shape)
        forms = [(1, size), (size, 1), (1, 1, size), (*shape[:1], math.prod(shape[1:]))]
        if len(shape) == 4:
            n, c, h, w = shape
            forms += [(n, c, h * w), (n, c * h, w), (n, h, c, w), (n, c, w, h)]
        elif len(shape) > 1:
            forms += [(1, *shape, 1), (1, 1, *shape), (shape[-1], *shape[:-1])]
        chosen = forms[self.number(0, len(forms) - 1)]
        if len(chosen) > 4:
            chosen = chosen[1:]
        y = self.net.node("Reshape", [self.real(x), self.net.const(np.array(chosen, np.int64))])
        self.store(y, chosen, self.tensors[x].spread, x)

    def transpose(self) -> None:
        x = self.pick(lambda stored: len(stored.shape) > 1)
        if x is None:
            return
        shape = self.tensors[x].shape
        perm = [int(axis) for axis in self.rng.permutation(len(shape))]
        y = self.net.node("Transpose", [self.real(x)], perm=perm)
        self.store(y, [shape[axis] for axis in perm], self.tensors[x].spread, x)

    def pad(self) -> None:
        x = self.pick()
        stored = self.tensors[x]
        mode = str(self.rng.choice(["constant", "constant", "edge", "reflect"]))
        most = [min(n - 1, 2) if mode == "reflect" else 2 for n in stored.shape]
        ends = [[self.number(0, n) if self.chance(0.5) else 0 for n in most] for _ in range(2)]
        shape = [n + a + b for n, a, b in zip(stored.shape, *ends, strict=True)]
        if math.prod(shape) > LARGEST:
            return
        given = [self.real(x), self.net.const(np.array([*ends[0], *ends[1]], np.int64))]
        if mode == "constant":
            given.append(self.net.const(self.number(-3, 3) * stored.scale, np.float32))
        self.store(self.net.node("Pad", given, mode=mode), shape, stored.spread, x)

    def again(self) -> None:
        """The same values in other steps."""
        x = self.pick()
        self.store(self.net.node("Identity", [self.real(x)]), self.tensors[x].shape, self.tensors[x].spread)
