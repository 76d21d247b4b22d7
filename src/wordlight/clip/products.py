"""Products of matrices in a chosen type, with float32 sums.

Bfloat16 operands are multiplied in their type and added up in float32, forwards and backwards; float16
forwards only, as gradients leave its range. Attention's products are in float32 on CPUs.
The rules of differentiation that JAX derives would multiply a float32 cotangent with a 16-bit operand, which
converts the operand and runs at the speed of float32.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def matrix_product(x: Float[Array, "*b i"], weight: Float[Array, "i o"]) -> Float[Array, "*b o"]:
    """Return `x @ weight`, computed in the type of the weight; at least float32."""
    if weight.dtype.itemsize > 2:
        return x @ weight
    rows = x.reshape(-1, x.shape[-1])
    # One row would be multiplied as a vector, for which XLA widens the whole weight first on CPUs; two rows
    # run ten times as fast.
    padded = jnp.pad(rows, [(0, 1), (0, 0)]) if len(rows) == 1 else rows
    product = contract("ni,io->no", padded, weight, dtype=weight.dtype)[: len(rows)]
    return product.reshape(*x.shape[:-1], weight.shape[1])


def contract(axes: str, x: Array, y: Array, *, dtype: Any) -> Array:
    """Return `einsum(axes, x, y)` of operands rounded to `dtype`, summed in float32.

    With a 16-bit type it is differentiable in reverse mode only.

    Args:
        axes: as of `einsum`, such as `"ni,io->no"`; every letter of an operand is in the other or the result.
        x: first operand, of any float type.
        y: second operand.
        dtype: of the products.
    """
    if jnp.dtype(dtype).itemsize > 2:
        return jnp.einsum(axes, x.astype(dtype), y.astype(dtype))
    return _contract_16(axes, jnp.dtype(dtype), x, y)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _contract_16(axes: str, dtype: Any, x: Array, y: Array) -> Array:
    return _product(axes, dtype, x, y)


def _product(axes: str, dtype: Any, x: Array, y: Array) -> Array:
    def narrow(x: Array, y: Array) -> Array:
        return jnp.einsum(axes, x, y, preferred_element_type=jnp.float32)

    def wide(x: Array, y: Array) -> Array:
        return jnp.einsum(axes, x.astype(jnp.float32), y.astype(jnp.float32))

    x, y = x.astype(dtype), y.astype(dtype)
    if not _is_batched(axes):
        return narrow(x, y)
    # XLA refuses some orders of the axes on CPUs, only when it runs them, if there are axes of a batch.
    return jax.lax.platform_dependent(x, y, cpu=wide, default=narrow)


def _is_batched(axes: str) -> bool:
    first, second, result = axes.replace("->", ",").split(",")
    return bool(set(first) & set(second) & set(result))


def _forward(axes: str, dtype: Any, x: Array, y: Array) -> tuple[Array, tuple[Array, Array, Any, Any]]:
    x16, y16 = x.astype(dtype), y.astype(dtype)
    # Empty arrays remember the types of the operands, which a residual may not hold as such.
    return _product(axes, dtype, x16, y16), (x16, y16, jnp.zeros(0, x.dtype), jnp.zeros(0, y.dtype))


def _backward(axes: str, dtype: Any, kept: tuple[Array, Array, Any, Any], gradient: Array) -> Any:
    x, y, like_x, like_y = kept
    if dtype == jnp.float16:
        dtype = jnp.dtype(jnp.float32)  # a gradient is easily below or beyond what float16 can hold
    first, second, result = axes.replace("->", ",").split(",")
    pull_x = _product(f"{result},{second}->{first}", dtype, gradient, y)
    pull_y = _product(f"{first},{result}->{second}", dtype, x, gradient)
    return pull_x.astype(like_x.dtype), pull_y.astype(like_y.dtype)


_contract_16.defvjp(_forward, _backward)
