"""Functions with finite values and finite gradients everywhere, where the plain formula gives NaN or
infinity.

Reverse-mode differentiation multiplies a zero cotangent by an infinite slope and gets NaN, even where
`jnp.where` discards the value. Each function here therefore replaces the argument before the singular
operation sees it. What is not a number stays so: a fault must not come out as a plausible value.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float


def at_least_float32(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return floats of 16 bits as float32, and wider ones as they are."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def safe_norm(x: Float[Array, "..."], *, axis: int = -1, keepdims: bool = False) -> Float[Array, "..."]:
    """Return the Euclidean norm along `axis`.

    The slope of a square root at zero is infinite, so the plain norm of a zero vector has gradient 0 * inf =
    NaN, and squares overflow beyond 1e19. Here a zero vector has norm zero and gradient zero, and any float32
    vector whose norm is a float32 has a finite one.
    """
    largest = jnp.max(jnp.abs(x), axis=axis, keepdims=True)
    # The norm does not depend on the scale, so holding it constant leaves the gradient exact.
    scale = jax.lax.stop_gradient(jnp.where(largest == 0, 1.0, largest)).astype(x.dtype)
    square = jnp.sum((x / scale) ** 2, axis=axis, keepdims=True)
    zero = square == 0
    norm = jnp.where(zero, 0.0, scale * jnp.sqrt(jnp.where(zero, 1.0, square))).astype(x.dtype)
    return norm if keepdims else jnp.squeeze(norm, axis)


def safe_normalize(x: Float[Array, "..."], *, axis: int = -1, epsilon: float = 1e-12) -> Float[Array, "..."]:
    """Return `x` divided by its Euclidean norm along `axis`.

    The plain quotient is 0 / 0 for a zero vector. Here vectors no longer than `epsilon` give a zero vector
    with zero gradient, so the slope is at most `1 / epsilon`.
    """
    norm = safe_norm(x, axis=axis, keepdims=True)
    short = norm <= epsilon
    return jnp.where(short, 0.0, x / jnp.where(short, 1.0, norm)).astype(x.dtype)


def safe_log(x: Float[Array, "..."], *, floor: float = 1e-6) -> Float[Array, "..."]:
    """Return the natural logarithm of `max(x, floor)`, of slope zero below the floor.

    The plain logarithm of zero is minus infinity with an infinite slope, and `0 * log(0)` is NaN.
    """
    return jnp.log(jnp.where(x <= floor, floor, x))


def safe_divide(
    numerator: Float[ArrayLike, "..."], denominator: Float[Array, "..."], *, epsilon: float = 1e-6
) -> Float[Array, "..."]:
    """Return `numerator / denominator`, and zero with zero gradient where `|denominator|` is at most
    `epsilon`.

    The slope of the plain quotient, `numerator / denominator**2`, overflows long before the quotient does.
    """
    small = jnp.abs(denominator) <= epsilon
    return jnp.where(small, 0.0, numerator / jnp.where(small, 1.0, denominator))


def truncated_exp(x: Float[Array, "..."], *, limit: float = 10.0) -> Float[Array, "..."]:
    """Return `exp(x)` up to `limit`, and beyond it the tangent line at `limit`.

    The plain exponential overflows float32 at 88.7, and one clamped there has slope zero, so that a parameter
    that overshoots never returns. The tangent keeps value and slope consistent, and positive.
    """
    excess = jnp.clip(x - limit, 0.0, 1e30)
    return jnp.exp(jnp.minimum(x, limit)) * (1.0 + excess)
