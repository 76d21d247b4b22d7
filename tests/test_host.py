"""Host code inside JAX: values, gradients, errors, and no waiting for each other."""

import re
import subprocess
import sys
import time
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jax.test_util import check_grads

from wordlight import host
from wordlight.errors import WordlightError

MESH = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
X = jnp.linspace(-1.0, 2.0, 6).reshape(2, 3)


def sine(**options):
    """sin of an array of any shape."""
    return host.function(np.sin, gradient=lambda cotangent, x: (cotangent * np.cos(x),), **options)


def quadratic(**options):
    """x' A x / 2 of the last axes, which takes any axes in front of both."""

    def value(x, a):
        return np.einsum("...i,...ij,...j->...", x, a, x) / 2

    def gradient(cotangent, x, a):
        both = np.einsum("...ij,...j->...i", a, x) + np.einsum("...ji,...j->...i", a, x)
        outer = x[..., :, None] * x[..., None, :]
        return cotangent[..., None] * both / 2, cotangent[..., None, None] * outer / 2

    return host.function(value, gradient=gradient, **options)


def scale_rows(rows, count):
    """A dict and an integer in, a tuple with an integer out."""
    return rows["a"] * count, {"count": count + 1, "sum": np.float32(rows["b"].sum())}


def scale_rows_gradient(cotangents, rows, count):
    scaled, others = cotangents
    assert others["count"] is None
    return {"a": scaled * count, "b": np.full_like(rows["b"], others["sum"])}, None


def native_quadratic(x, a):
    return x @ a @ x / 2


A = jnp.arange(9.0).reshape(3, 3) / 4


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_values_and_gradients_are_the_hosts(wrap):
    np.testing.assert_allclose(wrap(sine())(X), np.sin(X), rtol=1e-6)
    got = wrap(jax.grad(lambda x: (sine()(2 * x) ** 2).sum()))(X)
    np.testing.assert_allclose(got, 2 * np.sin(4 * X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_loss_and_its_gradients(wrap):
    got = wrap(jax.value_and_grad(lambda x, a: 3 * quadratic()(x, a), argnums=(0, 1)))(X[0], A)
    expected = jax.value_and_grad(lambda x, a: 3 * native_quadratic(x, a), argnums=(0, 1))(X[0], A)
    jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-6, atol=1e-6), got, expected)


def test_gradients_agree_with_differences():
    check_grads(sine(), (X,), order=1, modes=["rev"], rtol=2e-2)
    check_grads(jax.jit(quadratic()), (X[0], A), order=1, modes=["rev"], rtol=2e-2)


def test_a_loss_and_its_gradient_take_one_call_and_no_other_arithmetic():
    calls = []
    square = host.function(
        lambda x: calls.append("value") or np.float32((x**2).sum()),
        gradient=lambda cotangent, x: calls.append("gradient") or (cotangent * 2 * x,),
        output=jax.ShapeDtypeStruct((), jnp.float32),
    )
    step = jax.jit(jax.value_and_grad(square))
    value, gradient = step(X)
    np.testing.assert_allclose(value, (X**2).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient, 2 * X)
    assert calls == ["value", "gradient"]
    assert str(jax.make_jaxpr(jax.value_and_grad(square))(X)).count("buffer_callback[") == 1


def test_the_second_call_does_not_compile():
    step = jax.jit(jax.value_and_grad(lambda x: sine()(x).sum()))
    for scale in (1.0, 2.0):
        step(scale * X)
    assert step._cache_size() == 1


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_pytrees_and_integers_go_through(wrap):
    rows = {"a": X, "b": X[0]}
    f = host.function(scale_rows, gradient=scale_rows_gradient)
    scaled, others = wrap(f)(rows, jnp.int32(3))
    np.testing.assert_allclose(scaled, 3 * X)
    assert (int(others["count"]), float(others["sum"])) == (4, pytest.approx(float(X[0].sum())))

    def loss(rows, count):
        scaled, others = f(rows, count)
        return scaled.sum() + 2 * others["sum"]

    gradient = wrap(jax.grad(loss))(rows, jnp.int32(3))
    np.testing.assert_allclose(gradient["a"], np.full_like(X, 3))
    np.testing.assert_allclose(gradient["b"], [2, 2, 2])
    back = wrap(jax.grad(loss, argnums=1, allow_int=True))(rows, jnp.int32(3))
    assert back.dtype == jax.dtypes.float0


@pytest.mark.parametrize("method", ["sequential", "broadcast_all"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_vmap(method, wrap):
    f, axes = quadratic(vmap_method=method), (0, None)
    expected = jax.vmap(native_quadratic, axes)(X, A)
    np.testing.assert_allclose(wrap(jax.vmap(f, axes))(X, A), expected, rtol=1e-6, atol=1e-6)

    def gradients(g):
        return jax.vmap(jax.grad(g, argnums=(0, 1)), axes)(X, A)

    def total(g):
        return jax.grad(lambda x, a: jax.vmap(g, axes)(x, a).sum(), argnums=(0, 1))(X, A)

    for derivative in (gradients, total):
        for got, expected in zip(
            wrap(lambda d=derivative: d(f))(), derivative(native_quadratic), strict=True
        ):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_calls_under_vmap():
    shapes = []
    watched = {
        method: host.function(
            lambda x: shapes.append(x.shape) or x,
            output=lambda x: x,
            vmap_method=method,
        )
        for method in ("sequential", "broadcast_all")
    }
    jax.block_until_ready(jax.vmap(watched["sequential"])(X))
    jax.block_until_ready(jax.vmap(jax.vmap(watched["broadcast_all"]))(X))
    assert shapes == [(3,), (3,), (2, 3)]


def test_scan():
    def loss(x, f):
        return jax.lax.scan(lambda carry, row: (f(carry + row), row), jnp.zeros(3), x)[0].sum()

    got = jax.jit(jax.value_and_grad(lambda x: loss(x, sine())))(X)
    expected = jax.value_and_grad(lambda x: loss(x, jnp.sin))(X)
    jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-5), got, expected)


@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map_sums_the_gradient_of_what_is_replicated(check_vma):
    """A gradient must not be counted once for each device, nor on one device only."""
    x = jnp.linspace(0, 1, 24).reshape(8, 3)

    def loss(f):
        def local(x, a):
            return jax.lax.psum(jax.vmap(f, (0, None))(x, a).sum(), "d")

        specs = (PartitionSpec("d"), PartitionSpec())
        total = jax.shard_map(
            local, mesh=MESH, in_specs=specs, out_specs=PartitionSpec(), check_vma=check_vma
        )
        return jax.jit(jax.value_and_grad(total, argnums=(0, 1)))(x, A)

    for method in ("sequential", "broadcast_all"):
        got, expected = loss(quadratic(vmap_method=method)), loss(native_quadratic)
        jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-5), got, expected)


def test_a_sharded_array_under_jit():
    x = jax.device_put(jnp.linspace(0, 1, 8), NamedSharding(MESH, PartitionSpec("d")))
    got = jax.jit(jax.value_and_grad(lambda x: sine()(2 * x).sum()))(x)
    expected = jax.value_and_grad(lambda x: jnp.sin(2 * x).sum())(x)
    jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-5), got, expected)


def test_rematerialisation():
    got = jax.jit(jax.grad(jax.checkpoint(lambda x: sine()(sine()(x)).sum())))(X)
    np.testing.assert_allclose(got, np.cos(np.sin(X)) * np.cos(X), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32", "uint8", "bool"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_dtypes_and_empty_arrays_arrive_as_they_are(dtype, wrap):
    for x in (jnp.ones((2, 3), dtype), jnp.ones((0, 3), dtype), jnp.ones((), dtype)):
        y = wrap(host.function(lambda x: x))(x)
        assert (y.shape, y.dtype) == (x.shape, x.dtype)
        np.testing.assert_array_equal(y, x)


def test_numpys_double_precision_is_rounded_where_jax_has_none():
    f = host.function(
        lambda x: x.astype(np.float64).sum(), gradient=lambda c, x: (np.full(x.shape, c, float),)
    )
    value, gradient = jax.jit(jax.value_and_grad(f))(X)
    assert (value.dtype, gradient.dtype) == (jnp.float32, jnp.float32)
    jax.config.update("jax_enable_x64", True)
    assert jax.jit(f)(X).dtype == jnp.float64


def test_the_host_may_change_and_keep_its_arguments():
    kept = []

    def add_one(x):
        kept.append(x)
        x += 1
        return x

    f = jax.jit(host.function(add_one, output=lambda x: x))
    x = jnp.zeros(100)
    np.testing.assert_array_equal(f(x), np.ones(100))
    np.testing.assert_array_equal(x, np.zeros(100))
    np.testing.assert_array_equal(f(x + 5), np.full(100, 6))
    np.testing.assert_array_equal(kept[0], np.ones(100))


def test_what_the_host_keeps_to_itself_does_not_change_what_jax_has():
    buffer = np.zeros(64, np.float32)

    def refill(x):
        buffer[:] = x
        return buffer

    f = host.function(refill, output=lambda x: x)
    first = f(jnp.ones(64))
    f(jnp.zeros(64))
    np.testing.assert_array_equal(first, np.ones(64))


def test_calls_take_turns():
    inside = []

    def alone(x):
        inside.append(1)
        time.sleep(0.01)
        inside.pop()
        assert not inside
        return x

    f = host.function(alone, output=lambda x: x)
    spec = PartitionSpec("d")
    np.testing.assert_array_equal(
        jax.jit(jax.shard_map(f, mesh=MESH, in_specs=spec, out_specs=spec))(jnp.arange(8.0)), np.arange(8.0)
    )


NO_WAIT = """
import time
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from wordlight import host

def slow(x):
    time.sleep(0.02)  # so that all devices are inside at once
    return 2 * x

f = host.function(slow, gradient=lambda c, x: (2 * c,), output=lambda x: x)
devices = len(jax.devices())
mesh = jax.make_mesh((devices,), ("d",), axis_types=(AxisType.Auto,))
x = jax.device_put(jnp.ones((devices, 1_200_001)), NamedSharding(mesh, P("d")))
# Arithmetic before, and an odd size, for arguments that do not lie where the CPU could take them as they are.
mapped = jax.shard_map(lambda x: f(jnp.sin(x))[:, :3], mesh=mesh, in_specs=P("d"), out_specs=P("d"))
for g in (mapped, lambda x: f(jnp.sin(x))[:, :3]):
    loss = jax.jit(jax.value_and_grad(lambda x: g(x).sum()))
    value, gradient = jax.block_until_ready([loss(x) for _ in range(4)])[-1]
    np.testing.assert_allclose(value, 6 * devices * np.sin(1), rtol=1e-6)
    np.testing.assert_allclose(gradient[:, 0], 2 * np.cos(1), rtol=1e-6)
print("done")
"""


@pytest.mark.parametrize("devices", [1, 4])
def test_large_arrays_on_every_device_at_once_do_not_deadlock(devices, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", f"--xla_force_host_platform_device_count={devices}")
    done = subprocess.run(
        [sys.executable, "-c", NO_WAIT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "done\n", done.stderr


class LampIsOutError(Exception):
    pass


def broken(x):
    if np.any(x > 0):
        raise LampIsOutError("the lamp is out")
    return x


def broken_gradient(cotangent, x):
    raise LampIsOutError("the lamp is out")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: host.function(broken)(x),
        lambda x: jax.grad(lambda x: sum(host.function(np.copy, gradient=broken_gradient)(x)))(x),
        lambda x: jax.value_and_grad(host.function(np.sum, gradient=broken_gradient))(x),
    ],
    ids=["value", "gradient", "loss"],
)
def test_an_error_of_the_host_is_the_callers(call):
    with pytest.raises(LampIsOutError, match="the lamp is out"):
        call(jnp.ones(3))


def test_an_error_in_compiled_code_names_the_hosts():
    with pytest.raises(jax.errors.JaxRuntimeError, match="LampIsOutError: the lamp is out"):
        jax.block_until_ready(jax.jit(host.function(broken))(jnp.ones(3)))


@pytest.mark.parametrize("derivative", [False, True])
def test_an_error_in_compiled_code_leaves_the_block_as_itself(derivative):
    f = host.function(np.copy if derivative else broken, gradient=broken_gradient)
    step = jax.jit(jax.grad(lambda x: f(x).sum()) if derivative else f)
    with pytest.raises(LampIsOutError, match="the lamp is out") as caught, f.original_errors():
        jax.block_until_ready(step(jnp.ones(3)))
    assert isinstance(caught.value.__cause__, jax.errors.JaxRuntimeError)
    assert not f._listeners


def test_an_error_of_another_function_is_not_taken_for_its_own():
    mine, other = host.function(np.sin), jax.jit(host.function(broken))
    with pytest.raises(jax.errors.JaxRuntimeError, match="LampIsOutError"), mine.original_errors():
        jax.block_until_ready(other(jnp.ones(3)))


def test_a_function_goes_on_after_an_error():
    f = jax.jit(host.function(broken))
    with suppress(jax.errors.JaxRuntimeError):
        jax.block_until_ready(f(jnp.ones(3)))
    np.testing.assert_array_equal(f(-jnp.ones(3)), -np.ones(3))


def test_an_error_on_zeros_says_why_there_are_zeros():
    with pytest.raises(ZeroDivisionError) as caught:
        host.function(lambda x: 1 / int(x))(jnp.float32(2))
    assert "was called with zeros to learn the shapes" in caught.value.__notes__[0]
    declared = jax.ShapeDtypeStruct((), jnp.float32)
    assert host.function(lambda x: 1 / int(x), output=declared)(jnp.float32(2)) == 0.5


def fixed(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def refused(text):
    return pytest.raises(WordlightError, match=re.escape(text))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (np.ones((3, 1), np.float32), "returned float32[3, 1] instead of float32[3] as result."),
        (np.ones(3, np.int32), "returned int32[3] instead of float32[3] as result."),
        ((np.ones(3),), "returned ('float64[3]',) instead of float32[3] as result."),
        (None, "returned None instead of float32[3] as result."),
        ("three", "returned <U5[] instead of float32[3] as result."),
    ],
)
def test_a_result_of_another_shape_is_refused(result, text):
    f = host.function(lambda x: result, output=fixed(3))
    with refused(text):
        f(jnp.ones(3))
    with refused(text), f.original_errors():
        jax.block_until_ready(jax.jit(f)(jnp.ones(3)))


@pytest.mark.parametrize(
    ("gradient", "text"),
    [
        (np.ones(3, np.float32), "returned float32[3] instead of ('float32[3]',) as gradient."),
        ((np.float32(1),), "returned ('float32[]',) instead of ('float32[3]',) as gradient."),
        ((np.ones(3, np.float16),), "returned ('float16[3]',) instead of ('float32[3]',) as gradient."),
        ((None,), "returned (None,) instead of ('float32[3]',) as gradient."),
    ],
)
def test_a_gradient_of_another_shape_is_refused(gradient, text):
    f = host.function(lambda x: x, gradient=lambda c, x: gradient)
    with refused(text):
        jax.grad(lambda x: f(x).sum())(jnp.ones(3))


def test_mapped_axes_that_do_not_come_back_are_refused():
    f = host.function(np.sum, vmap_method="broadcast_all")
    with refused("returned float32[] instead of float32[2] as result."), f.original_errors():
        jax.block_until_ready(jax.jit(jax.vmap(f))(X))


def test_what_cannot_be_differentiated_says_so():
    with refused("sin has no gradient. It was wrapped without one"):
        jax.grad(host.function(np.sin))(1.0)
    with refused("The gradient of sin was differentiated, as for a Hessian"):
        jax.grad(jax.grad(sine()))(1.0)
    with refused("The gradient of sin was differentiated"):
        jax.jit(jax.hessian(lambda x: sine()(x).sum()))(X)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(sine(), (X,), (X,))
    stopped = jax.grad(lambda x: x * host.function(np.sin)(jax.lax.stop_gradient(x)))
    np.testing.assert_allclose(stopped(1.0), np.sin(1), rtol=1e-6)


@pytest.mark.parametrize("x", [jax.random.key(0), jnp.ones(2, jnp.complex64)], ids=["key", "complex"])
def test_dtypes_that_mean_nothing_on_the_other_side_are_refused(x):
    with refused(
        f"copy has an argument of dtype {x.dtype}. Only real numbers mean the same to JAX and to the host."
    ):
        host.function(np.copy)(x)
    with refused("has a result of dtype <U4. Only real numbers"):
        host.function(lambda: "text")()


def test_an_unknown_vmap_method_is_refused():
    with refused("There is no vmap_method 'expand_dims'."):
        host.HostFunction("f", np.sin, None, None, "expand_dims")


def test_without_pytorch_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with refused("Run `pip install torch`."):
        host.torch(lambda x: x)
