"""Images of another size than a checkpoint's: the position embeddings' grid, resampled.

Notation: n and m positions before and after, d width.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from wordlight.clip.config import ResNetConfig
from wordlight.clip.config_values import check_patch
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.kernels import bicubic_weights
from wordlight.clip.model import ClipModel
from wordlight.errors import WordlightError


def with_image_size(model: ClipModel, image_size: tuple[int, int], *, antialias: bool) -> ClipModel:
    """Return a model that takes images of another size, its position embeddings resampled.

    Args:
        model: with a vision transformer.
        image_size: (height, width) of the preprocessed image.
        antialias: see `resized_positions`.

    Raises:
        WordlightError: the tower is a ResNet, or a patch does not fit.
    """
    vision = model.config.vision
    if isinstance(vision, ResNetConfig):
        raise WordlightError(
            f"A ResNet was asked to take images of {image_size}. Its attention pooling has one position for "
            f"each cell of {vision.image_size}, and no reference program resamples those. Leave image_size "
            "out."
        )
    check_patch(vision.patch_size, image_size)
    resized = replace(vision, image_size=image_size)
    positions = resized_positions(
        model.params["vision"]["positions"], vision.grid, resized.grid, antialias=antialias
    )
    params = model.params | {"vision": model.params["vision"] | {"positions": positions}}
    return replace(
        model,
        params=params,
        config=replace(model.config, vision=resized),
        image_spec=_resized_spec(model.image_spec, image_size),
    )


def _resized_spec(spec: ImageSpec, size: tuple[int, int]) -> ImageSpec:
    """Return the same preprocessing for another size; where one edge is named, it covers the longer side."""
    one_edge = spec.resize == "shortest" and spec.mode != "open_clip"
    return replace(spec, size=size, resize_to=(max(size),) * 2 if one_edge else size)


def resized_positions(
    positions: Float[Array, "n d"],
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    *,
    antialias: bool,
) -> Float[Array, "m d"]:
    """Return the embeddings of a new grid, by PyTorch's bicubic kernel; a class token stays as it is.

    Args:
        positions: of the class token, if there is one, then of the patches row by row.
        old_grid: (rows, columns) of patches now.
        new_grid: (rows, columns) of patches wanted.
        antialias: OpenCLIP widens the kernel where the grid shrinks, `transformers` does not.
    """
    first = positions.shape[0] - old_grid[0] * old_grid[1]
    grid = positions[first:].astype(jnp.float32).reshape(*old_grid, -1)
    rows, columns = (
        bicubic_weights(old, new, antialias=antialias).astype(np.float32)
        for old, new in zip(old_grid, new_grid, strict=True)
    )
    resized = jnp.einsum("yh,xw,hwd->yxd", rows, columns, grid, precision="highest")
    flat = resized.reshape(new_grid[0] * new_grid[1], -1).astype(positions.dtype)
    return jnp.concatenate([positions[:first], flat])
