"""Habits of the public interface, kept by inspection: keys first, options by keyword, all described."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import wordlight

ROOT = Path(__file__).parents[1]

# They follow other programs' signatures, or a framework's.
OTHERS_SIGNATURES = {"wordlight.hf"}
# The thing acted on comes first in these, as in `render_rays(field, rays, key)`; the rest of the package: key
# first.
KEY_LATER = {"render_ball", "render_image", "render_rays", "train_step"}


def modules():
    for info in pkgutil.walk_packages(wordlight.__path__, "wordlight."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def public_things():
    """(module.name, object) for each public function and class, where it is defined."""
    for module in filter(lambda module: is_public(module.__name__), modules()):
        for name, thing in vars(module).items():
            mine = callable(thing) and getattr(thing, "__module__", None) == module.__name__
            if mine and is_public(name) and getattr(thing, "__name__", None) == name:
                yield f"{module.__name__}.{name}", thing


THINGS = dict(public_things())
FUNCTIONS = {
    name: thing
    for name, thing in THINGS.items()
    if not inspect.isclass(thing) and name.rpartition(".")[0] not in OTHERS_SIGNATURES
}
KEYS = {name: thing for name, thing in FUNCTIONS.items() if "key" in inspect.signature(thing).parameters}
SOURCES = [
    file
    for folder in ("src", "tests", "bench", "examples", "parity")
    for file in (ROOT / folder).rglob("*.py")
]


@pytest.mark.parametrize("name", getattr(wordlight, "__all__", ()))
def test_every_exported_name_resolves(name):
    assert getattr(wordlight, name) is not None
    assert name in dir(wordlight)


def test_exports_are_listed_once():
    names = list(getattr(wordlight, "__all__", ()))
    assert len(names) == len(set(names))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(wordlight, "no_such" + "_name")


@pytest.mark.parametrize("name", THINGS)
def test_everything_public_is_described(name):
    text = inspect.getdoc(THINGS[name]) or ""
    generated = f"{THINGS[name].__name__}("
    assert text, f"{name} has no docstring"
    assert not text.startswith(generated), f"{name} has no docstring of its own"


@pytest.mark.parametrize("name", THINGS)
def test_public_methods_are_described(name):
    if not inspect.isclass(THINGS[name]):
        return
    for method, value in vars(THINGS[name]).items():
        if is_public(method) and inspect.isfunction(value):
            assert value.__doc__, f"{name}.{method} has no docstring"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_are_keyword_only(name):
    options = [
        parameter.name
        for parameter in inspect.signature(FUNCTIONS[name]).parameters.values()
        if parameter.default is not parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY
        if parameter.name != "key"  # None stands for no randomness, not for an option
    ]
    assert not options, f"{name}: {options} have defaults but can be passed by position"


@pytest.mark.parametrize("name", KEYS)
def test_keys_come_first(name):
    if name.rpartition(".")[2] in KEY_LATER:
        return
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    assert parameters["key"].kind is inspect.Parameter.KEYWORD_ONLY or next(iter(parameters)) == "key"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_file_outgrows_a_readers_patience(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= (
        400 if file.is_relative_to(ROOT / "src") else 450
    )
