"""Host code as a differentiable JAX function: a NumPy function with its gradient, or a PyTorch module.

JAX sees shapes only. Python computes values and gradients: in callbacks under `jit`, `vmap`, `scan` and
`shard_map`, directly where the values are known. No callback runs a JAX computation: it copies its arguments
to NumPy and goes on from there.
"""

import importlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.dtypes import canonicalize_dtype
from jax.experimental.buffer_callback import buffer_callback

from wordlight.errors import WordlightError

VmapMethod = Literal["sequential", "broadcast_all"]


def function(
    fn: Callable[..., Any],
    *,
    gradient: Callable[..., Any] | None = None,
    output: Any = None,
    vmap_method: VmapMethod = "sequential",
) -> "HostFunction":
    """Return a NumPy function as a JAX function.

    With a `gradient` it is differentiable in reverse mode, once: the gradient itself has none.

    Args:
        fn: takes pytrees of NumPy arrays, copies that it may change, and returns a pytree of arrays that
            depends on its arguments alone: JAX may call it again, or not at all.
        gradient: takes the cotangents, a pytree like the result with None for each integer, and then the
            arguments. Returns a tuple with an entry for each argument: a pytree like it, the gradients of
            `sum(cotangent * result)`, with None for each integer.
        output: shapes and dtypes of the result: a pytree of `jax.ShapeDtypeStruct`, or a function that makes
            one from those of the arguments. None calls `fn` with zeros, once for each new set of shapes.
        vmap_method: `"sequential"` calls `fn` for each example; `"broadcast_all"` calls it once, with the
            mapped axes in front of every argument, and expects them in front of every result and gradient.

    Raises:
        WordlightError: an unknown `vmap_method`. When called: a result or gradient of other shapes than
            declared; complex numbers; differentiation without `gradient`, or twice.
    """

    def pull_back(cotangents: Any, *arguments: Any, with_value: bool) -> tuple[Any, Any]:
        # Both may change their arrays.
        value = fn(*jax.tree.map(np.copy, arguments)) if with_value else None
        return value, gradient and gradient(cotangents, *arguments)

    return HostFunction(_name(fn), fn, pull_back if gradient else None, output, vmap_method)


def torch(
    module: Callable[..., Any], *, output: Any = None, vmap_method: VmapMethod = "sequential"
) -> "HostFunction":
    """Return a PyTorch module as a JAX function of its inputs, with autograd's gradient.

    Its parameters are constants. It may return tensors, and tuples and mappings of them, which become dicts.
    An input that no result depends on has gradient zero. Integers are not differentiable.

    Args:
        module: an `nn.Module` in evaluation mode, which gets its inputs on the device of its first parameter
            or buffer; or a function of tensors, which gets them on the CPU.
        output: as in `function`.
        vmap_method: as in `function`; for `"broadcast_all"` it must take examples along leading axes.

    Raises:
        WordlightError: PyTorch is not installed, or the module is in training mode. When called: as in
            `function`; something else than tensors comes out; autograd finds no way back to any input.
    """
    try:
        th = importlib.import_module("torch")
    except ImportError as error:
        raise WordlightError(
            f"host.torch needs PyTorch: {error}. Wordlight does not install it. Run `pip install torch`."
        ) from error
    if getattr(module, "training", False):
        raise WordlightError(
            f"{_name(module)} is in training mode. Dropout would draw anew for the gradient, and every call "
            "would change the statistics of batch normalisation. Call module.eval() first."
        )
    calls = _TorchCalls(th, module)
    return HostFunction(_name(module), calls.value, calls.pull_back, output, vmap_method)


@dataclass(frozen=True, eq=False)
class HostFunction:
    """A host function that JAX can call and differentiate; made by `function` and `torch`.

    Calls never overlap: devices that come at the same time take turns. `pull_back(cotangents, *arguments,
    with_value)` returns the value, or None, and the gradients.
    """

    name: str
    value: Callable[..., Any]
    pull_back: Callable[..., tuple[Any, Any]] | None
    output: Any
    vmap_method: VmapMethod
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.Lock, repr=False)
    _listeners: dict[int, list[BaseException]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.vmap_method not in get_args(VmapMethod):
            raise WordlightError(
                f"There is no vmap_method {self.vmap_method!r}. JAX has others, for which the gradient of an "
                'argument that is not mapped has no clear shape. Pass "sequential" or "broadcast_all".'
            )

    def __call__(self, *arguments: Any) -> Any:
        """Return the result for pytrees of arrays, traced or not."""
        leaves, tree = jax.tree.flatten(arguments)
        leaves = [jnp.asarray(leaf) for leaf in leaves]
        _refuse_unusual(self.name, "an argument", leaves)
        # Where an argument that is the same on all devices is cast, JAX sums its gradient over them.
        return _apply(self, tree, *_vary(leaves, like=leaves))

    @contextmanager
    def original_errors(self) -> Iterator[None]:
        """Let errors of this function leave the block as themselves, from compiled code too.

        JAX raises a `JaxRuntimeError` there, which becomes their `__cause__`, when a result is waited for:
        call `jax.block_until_ready` inside the block.
        """
        raised: list[BaseException] = []
        self._listeners[id(raised)] = raised
        try:
            yield
        except jax.errors.JaxRuntimeError as error:
            for original in raised:
                if type(original).__name__ in str(error):
                    raise original from error
            raise
        finally:
            del self._listeners[id(raised)]

    def _shapes(self, tree: Any, leaves: Sequence[Any]) -> Any:
        """Return the shapes and dtypes of the result for these arguments."""
        structs = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        key = (tree, *structs, canonicalize_dtype(float))
        if key not in self._known:
            declared = self._declared(jax.tree.unflatten(tree, structs))
            _refuse_unusual(self.name, "a result", jax.tree.leaves(declared))
            self._known[key] = jax.tree.map(_struct, declared)
        return self._known[key]

    def _declared(self, arguments: Any) -> Any:
        if self.output is not None:
            return self.output(*arguments) if callable(self.output) else self.output
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), arguments)
        try:
            return jax.tree.map(np.asarray, self._in_turn(self.value, *zeros))
        except Exception as error:
            error.add_note(
                f"{self.name} was called with zeros to learn the shapes of its result. Where zeros make no "
                "sense, pass the shapes and dtypes, output=."
            )
            raise

    def _in_turn(self, run: Callable[..., Any], *arguments: Any) -> Any:
        """Run one call at a time, and tell those who listen of its error."""
        try:
            with self._lock:
                return run(*arguments)
        except BaseException as error:
            for raised in list(self._listeners.values()):
                raised.append(error)
            raise


def _result(host: HostFunction, tree: Any, *leaves: Any) -> Any:
    shapes = host._shapes(tree, leaves)
    return _run(_Job(host, "result", lambda *x: host.value(*jax.tree.unflatten(tree, x)), shapes), leaves)


def _forward(host: HostFunction, tree: Any, *leaves: Any) -> tuple[Any, Any]:
    if host.pull_back is None:
        raise WordlightError(
            f"{host.name} has no gradient. It was wrapped without one, and JAX cannot look into host code. "
            "Pass gradient= to host.function, or give the function jax.lax.stop_gradient of its arguments."
        )
    shapes = host._shapes(tree, leaves)
    results = jax.tree.leaves(shapes)
    if [_is_float(leaf) and leaf.shape == () for leaf in results] != [True]:
        return _result(host, tree, *leaves), (leaves, None)
    # The gradient of a loss is linear in its one cotangent: it is computed for 1 on the same trip.
    run = partial(_pull_back, host, tree, shapes, True)
    job = _Job(host, "result and gradient", run, (shapes, _gradient_shapes(tree, leaves)))
    value, gradients = _run(job, [jnp.ones((), results[0].dtype), *leaves])
    return value, (leaves, jax.tree.leaves(gradients))


def _backward(host: HostFunction, tree: Any, residuals: Any, cotangents: Any) -> tuple[Any, ...]:
    (leaves, gradients), given = residuals, [c for c in jax.tree.leaves(cotangents) if _is_float(c)]
    if gradients is None:
        run = partial(_pull_back, host, tree, host._shapes(tree, leaves), False)
        job = _Job(host, "gradient", run, _gradient_shapes(tree, leaves))
        gradients = jax.tree.leaves(_run(job, [*given, *leaves]))
    else:
        gradients = [(given[0] * gradient).astype(gradient.dtype) for gradient in gradients]
    rest = iter(gradients)
    return tuple(next(rest) if _is_float(leaf) else None for leaf in leaves)


_apply = jax.custom_vjp(_result, nondiff_argnums=(0, 1))
_apply.defvjp(_forward, _backward)


def _pull_back(host: Any, tree: Any, shapes: Any, with_value: bool, *arrays: np.ndarray) -> Any:
    """Call the host's gradient with cotangents of the float results, then the arguments."""
    count = len(arrays) - tree.num_leaves
    given, arguments = iter(arrays[:count]), jax.tree.unflatten(tree, arrays[count:])
    cotangents = jax.tree.map(lambda leaf: next(given) if _is_float(leaf) else None, shapes)
    value, gradients = host.pull_back(cotangents, *arguments, with_value=with_value)
    return (value, gradients) if with_value else gradients


def _gradient_shapes(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return what the host's gradient must look like: the arguments, with None for each integer."""
    return jax.tree.unflatten(tree, [_struct(leaf) if _is_float(leaf) else None for leaf in leaves])


class _Job(NamedTuple):
    """A call of `run(*arrays)` on the host, whose result has these shapes."""

    host: HostFunction
    what: str
    run: Callable[..., Any]
    shapes: Any

    def __call__(self, ranks: Sequence[int], *arrays: Any) -> list[np.ndarray]:
        """Return the leaves of the result, checked; `ranks` are the arguments' without mapped axes."""
        # Copies, and before the turn: what JAX passes is memory of its own, which it takes back afterwards.
        copies = [np.asarray(array).copy() for array in arrays]
        mapped = copies[0].shape[: copies[0].ndim - ranks[0]] if copies else ()
        return self.host._in_turn(self._checked, mapped, copies)

    def _checked(self, mapped: tuple[int, ...], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        result = jax.tree.map(np.asarray, self.run(*arrays))
        if jax.tree.structure(result) == jax.tree.structure(self.shapes):
            result = jax.tree.map(_narrowed, result, self.shapes)
        found = jax.tree.map(lambda leaf: f"{leaf.dtype}{[*leaf.shape]}", result)
        wanted = jax.tree.map(lambda leaf: f"{leaf.dtype}{[*mapped, *leaf.shape]}", self.shapes)
        if found != wanted:
            raise WordlightError(
                f"{self.host.name} returned {found} instead of {wanted} as {self.what}. Compiled code fixes "
                "shapes and dtypes, and a gradient has its argument's; a lost axis is the usual reason. "
                "Correct what it returns, or declare it with output=."
            )
        return jax.tree.leaves(result)


def _run(job: _Job, leaves: Sequence[Any]) -> Any:
    """Call now where values are known, so that errors are the caller's; else in a callback."""
    call = partial(job, [leaf.ndim for leaf in leaves])
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        results = _vary(_call_back(job, call, *leaves), like=leaves)
    else:
        results = [jnp.array(array) for array in call(*leaves)]
    return jax.tree.unflatten(jax.tree.structure(job.shapes), results)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _call_back(job: _Job, call: Callable[..., list[np.ndarray]], *leaves: Any) -> list[Any]:
    shapes, method = jax.tree.leaves(job.shapes), job.host.vmap_method

    def fill(_: Any, targets: Any, *arrays: Any) -> None:
        for target, result in zip(targets, call(*arrays), strict=True):
            np.copyto(np.asarray(target), result)

    # On the CPU, arguments of `pure_callback` are copied by the pool of threads that its callbacks occupy:
    # as many devices as threads wait for each other forever.
    return jax.lax.platform_dependent(
        *leaves,
        cpu=lambda *leaves: buffer_callback(fill, shapes, vmap_method=method)(*leaves),
        default=lambda *leaves: jax.pure_callback(call, shapes, *leaves, vmap_method=method),
    )


@_call_back.defjvp
def _refuse_second_derivative(job: _Job, call: Any, primals: Any, tangents: Any) -> Any:
    raise WordlightError(
        f"The gradient of {job.host.name} was differentiated, as for a Hessian or a gradient penalty. The "
        "host computes first derivatives only. Use a JAX function there, such as a model of wordlight.load."
    )


class _TorchCalls(NamedTuple):
    """A PyTorch module on NumPy arrays."""

    th: Any
    module: Any

    def value(self, *arguments: Any) -> Any:
        with self.th.no_grad():
            return jax.tree.map(self._to_array, _plain(self.module(*self._to_tensors(arguments))))

    def pull_back(self, cotangents: Any, *arguments: Any, with_value: bool) -> tuple[Any, Any]:
        # Both modes belong to the thread, and the caller's may have turned them off.
        with self.th.inference_mode(False), self.th.enable_grad():
            tensors = self._to_tensors(arguments)
            inputs = [leaf.requires_grad_() for leaf in jax.tree.leaves(tensors) if leaf.is_floating_point()]
            # Clones, for modules that change their input in place: autograd refuses that at a leaf.
            results = _plain(self.module(*jax.tree.map(lambda leaf: leaf.clone(), tensors)))
            gradients = iter(self._gradients(results, cotangents, inputs))
        given = jax.tree.map(lambda leaf: next(gradients) if leaf.requires_grad else None, tensors)
        return jax.tree.map(self._to_array, results), given

    def _gradients(self, results: Any, cotangents: Any, inputs: list[Any]) -> list[np.ndarray]:
        given = jax.tree.structure(results).flatten_up_to(cotangents)
        pairs = [pair for pair in zip(jax.tree.leaves(results), given, strict=True) if pair[0].requires_grad]
        outputs = [output for output, _ in pairs]
        weights = [self._to_tensor(weight).to(output.device) for output, weight in pairs]
        found = self.th.autograd.grad(outputs, inputs, weights, allow_unused=True) if pairs else [None]
        if all(gradient is None for gradient in found):
            raise WordlightError(
                f"No result of {_name(self.module)} depends on its inputs for autograd. It probably runs "
                "under torch.no_grad, detaches, or goes through NumPy or a processor. Keep to differentiable "
                "operations on the tensors it is given, or stop the gradient with jax.lax.stop_gradient."
            )
        zeros = map(self.th.zeros_like, inputs)
        return [self._to_array(zero if g is None else g) for zero, g in zip(zeros, found, strict=True)]

    def _to_tensors(self, arguments: Any) -> Any:
        module = self.module
        owned = [*module.parameters(), *module.buffers()] if hasattr(module, "parameters") else []
        place = owned[0].device if owned else "cpu"
        return jax.tree.map(lambda array: self._to_tensor(array).to(place), arguments)

    def _to_tensor(self, array: np.ndarray) -> Any:
        if array.dtype == jnp.bfloat16:  # PyTorch does not know NumPy's
            return self.th.from_numpy(array.view(np.int16)).view(self.th.bfloat16)
        return self.th.from_numpy(array)

    def _to_array(self, tensor: Any) -> np.ndarray:
        tensor = tensor.detach().cpu()
        if tensor.dtype == self.th.bfloat16:
            return tensor.view(self.th.int16).numpy().view(jnp.bfloat16)
        return tensor.numpy()


def _plain(result: Any) -> Any:
    """Return tensors in tuples and dicts, which JAX can take apart; output classes are mappings."""
    if isinstance(result, Mapping):
        return {name: _plain(value) for name, value in result.items()}
    if isinstance(result, tuple | list):
        return tuple(_plain(value) for value in result)
    if result is None or hasattr(result, "requires_grad"):
        return result
    raise WordlightError(
        f"The module returned a {type(result).__name__}. Only tensors, and tuples and mappings of them, have "
        "an equivalent in JAX. Wrap it in a function that picks the tensors out."
    )


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def _struct(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, canonicalize_dtype(leaf.dtype))


def _narrowed(array: np.ndarray, struct: jax.ShapeDtypeStruct) -> np.ndarray:
    return array.astype(struct.dtype) if array.dtype.str[1:] == f"{struct.dtype.kind}8" else array


def _vary(values: Sequence[Any], *, like: Sequence[Any]) -> list[Any]:
    """Let values count as different across the axes of a `shard_map` across which any of the others are."""
    axes = frozenset[Any]().union(*map(_varying_axes, like))
    missing = [tuple(axes - _varying_axes(value)) for value in values]
    return [jax.lax.pcast(v, m, to="varying") if m else v for v, m in zip(values, missing, strict=True)]


def _varying_axes(value: Any) -> frozenset[Any]:
    kind = jax.typeof(value)
    return getattr(getattr(kind, "manual_axis_type", kind), "varying", getattr(kind, "vma", frozenset()))


def _refuse_unusual(name: str, what: str, leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if not isinstance(leaf.dtype, np.dtype) or leaf.dtype.kind not in "biufV":
            raise WordlightError(
                f"{name} has {what} of dtype {leaf.dtype}. Only real numbers mean the same to JAX and to the "
                "host. Pass jax.random.key_data of a key, or real and imaginary parts."
            )
