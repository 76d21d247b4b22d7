"""How one of our weights relates to the tensors of a checkpoint.

A layout is a tree of `Source` with the structure of `ClipModel.params`, so that reading and writing are one
`tree.map`.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np

from wordlight.clip.layers import Params

Kind = Literal["same", "linear", "patch", "conv"]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """Names of the tensors that make up one weight, and how theirs relates to ours.

    Attributes:
        names: tensors, joined along their first axis where there are several (query, key, value).
        kind: `"linear"` is [out, in] there and [in, out] here; `"conv"` is [out, in, rows, columns] there and
            [rows, columns, in, out] here; `"patch"` is such a convolution flattened to a matrix; `"same"` is
            as it is, apart from axes of length one.
        shares: how the joined axis is divided between the tensors; equally if empty.
        extra: axes of length one that their tensor has in front of ours.
    """

    names: tuple[str, ...]
    kind: Kind = "same"
    shares: tuple[int, ...] = ()
    extra: int = 0

    def theirs_shapes(self, shape: Shape) -> list[Shape]:
        """Return the shape each named tensor must have for our weight of the given shape."""
        if self.kind == "linear":
            return [(rows, shape[0]) for rows in self._rows(shape[1])]
        if self.kind == "conv":
            return [(shape[3], shape[2], shape[0], shape[1])]
        if self.kind == "patch":
            side = round((shape[0] / 3) ** 0.5)
            return [(shape[1], 3, side, side)]
        if len(self.names) == 1:
            return [(1,) * self.extra + shape]
        return [(rows, *shape[1:]) for rows in self._rows(shape[0])]

    def to_theirs(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return our weight as the named tensors: views, so what is written to them is written to ours."""
        shapes = self.theirs_shapes(weight.shape)
        if self.kind == "linear":
            weight = weight.T
        elif self.kind == "conv":
            weight = weight.transpose(3, 2, 0, 1)
        elif self.kind == "patch":
            d, channels, side, _ = shapes[0]
            weight = weight.reshape(side, side, channels, d).transpose(3, 2, 0, 1)
        if len(self.names) == 1:
            return {self.names[0]: weight.reshape(shapes[0])}
        ends = list(accumulate(shape[0] for shape in shapes))
        return dict(zip(self.names, np.split(weight, ends[:-1]), strict=True))

    def _rows(self, total: int) -> list[int]:
        shares = self.shares or (1,) * len(self.names)
        return [total * share // sum(shares) for share in shares]


def linear(*prefixes: str, bias: bool = True, shares: tuple[int, ...] = ()) -> Params:
    """Return the sources of a linear layer, several of theirs joined to one of ours."""
    layer: Params = {"weight": Source(tuple(f"{p}.weight" for p in prefixes), "linear", shares)}
    return layer | ({"bias": Source(tuple(f"{p}.bias" for p in prefixes), shares=shares)} if bias else {})


def norm(prefix: str) -> Params:
    """Return the sources of a norm."""
    return {"scale": one(f"{prefix}.weight"), "bias": one(f"{prefix}.bias")}


def one(name: str, kind: Kind = "same", *, extra: int = 0) -> Source:
    """Return the source of a weight that is one of their tensors."""
    return Source((name,), kind, extra=extra)


def mlp(prefix: str) -> Params:
    """Return the sources of an MLP whose layers are `fc1` and `fc2`, as in `transformers` and timm."""
    return {"up": linear(f"{prefix}.fc1"), "down": linear(f"{prefix}.fc2")}


def packed(prefix: str) -> Params:
    """Return the sources of PyTorch's attention with query, key and value in one tensor."""
    weight, bias = f"{prefix}.in_proj_weight", f"{prefix}.in_proj_bias"
    return {"qkv": {"weight": one(weight, "linear"), "bias": one(bias)}, "out": linear(f"{prefix}.out_proj")}
