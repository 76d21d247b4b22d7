"""The type checker that the import hook puts around every function of the package while tests run."""

from collections.abc import Callable

from beartype import BeartypeConf, beartype

# An int passes for a float, as the typing rules (PEP 484) and pyright have it.
_typed = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check(function: Callable) -> Callable:
    """Check arguments and results of `function`, but not those of a dataclass constructor.

    JAX rebuilds registered dataclasses through their constructor, with tracers, batched arrays, shardings or
    placeholders as leaves: the annotations there describe the value a user builds, not every pytree of that
    shape.
    """
    return function if function.__name__ == "__init__" else _typed(function)
