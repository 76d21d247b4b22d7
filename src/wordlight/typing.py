"""Shaped types that many modules share, and the glossary of axis letters.

Axes in annotations and einsum strings are letters or words. Where a module needs other letters, a notation
line at its top says so.

| axis | meaning |
|---|---|
| `*b` | any leading axes, the same for all arguments of a function |
| `b` | images or sequences of a batch |
| `height`, `width` (`h`, `w`) | rows and columns of an image, row 0 at the top |
| `y`, `x` | rows and columns of a resized image |
| `c` | channels |
| `n` | tokens of a sequence; texts; negatives |
| `m` | tokens or positions of the other kind than `n` |
| `p` | patches; prompts |
| `q` | queries of an attention; target pictures |
| `d` | width of a tower: features of a token |
| `e` | features of an embedding |
| `i`, `o` | input and output features of a linear map or convolution |
| `r`, `s` | rows and columns of a convolution's kernel |
| `v` | views of an image |
| `k` | features of an attention head; kinds of objects |
| `rays`, `samples`, `edges` | rays; field evaluations along a ray; borders of their segments |
| `x y z` | vertices of a grid; x right, y into the scene, z up |
| `1`, `3`, `4`, `6` | that many values: scalars, colours or coordinates, columns of a pose, a packed view |
"""

from jaxtyping import Array, Float

Scalars = Float[Array, "*b"]
Vectors = Float[Array, "*b 3"]
TokenFeatures = Float[Array, "b n d"]
Pixels = Float[Array, "b height width 3"]
