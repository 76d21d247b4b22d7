"""Imports point one way: every import statement of the package is parsed and held against the map below."""

import ast
import os
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "wordlight"
FILES = sorted(PACKAGE.rglob("*.py"))

GROUND = {"errors", "typing", "numerics"}
PICTURES = GROUND | {"export"}
SIDES = GROUND | {"clip", "losses", "augment", "radiance"}

# Room -> the rooms that it may import. A room is a file or a folder directly inside the package.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "typing": {"errors"},
    "numerics": {"errors", "typing"},
    "clip": GROUND | {"memory"},
    "losses": GROUND,
    "augment": GROUND,
    "radiance": GROUND,
    "host": GROUND,
    "memory": set(),
    "viewpoints": set(),
    "huge_pages": set(),
    "export": GROUND,
    "hf": GROUND | {"clip"},
    "guidance": GROUND | {"clip", "losses", "augment", "viewpoints"},
    "data": PICTURES | {"augment", "radiance", "viewpoints"},
    "train": PICTURES | SIDES | {"guidance", "data", "viewpoints"},
    "evaluate": PICTURES | SIDES | {"guidance", "data", "train"},
    "viewer": PICTURES | SIDES | {"guidance", "data", "train"},
    "cli": PICTURES | SIDES | {"guidance", "data", "train", "evaluate", "hf", "viewer"},
}
# The names that users see; the root imports nothing else and nothing imports it.
MAY_IMPORT["__init__"] = set(MAY_IMPORT) - {"viewer", "cli", "huge_pages", "memory"}
MAY_IMPORT["__main__"] = {"cli", "huge_pages"}

# Packages that cost seconds, or that only some people have -> the rooms that may name them.
HEAVY: dict[str, set[str]] = {
    "PIL": {"clip", "data", "evaluate", "export", "hf", "train", "cli", "viewer"},
    "av": {"export"},
    "skimage": {"export"},
    "optax": {"train"},
    "orbax": {"train"},
    "rich": {"train", "cli"},
    "tyro": {"cli", "train"},
    "huggingface_hub": {"clip"},
    "tokenizers": {"clip", "train"},
    "safetensors": {"clip", "data", "train"},
    "torch": {"clip", "host"},
    "beartype": set(),
    "flax": set(),
    "scipy": set(),
    "transformers": set(),
    "trimesh": set(),
}


def module_name(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """wordlight.clip.model -> clip; wordlight.hf_images -> hf, a part of it; the root -> __init__."""
    name = [*module.split("."), "__init__"][1]
    return "hf" if name.startswith("hf_") else name


def imports_of(file: Path) -> set[str]:
    """Every module that a file names, at its top or inside a function, with relative imports resolved."""
    # The root of a relative import of one dot: the folder that the file lies in.
    folder = file.parent.relative_to(PACKAGE.parent).parts
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) + 1 - node.level] if node.level else ()
            module = ".".join(filter(None, [*base, node.module]))
            found |= {_submodule(module, alias.name) for alias in node.names}
    return found


def _submodule(module: str, name: str) -> str:
    """`from wordlight.clip import model` names wordlight.clip.model; of a function, only its home."""
    path = PACKAGE.parent.joinpath(*module.split("."), name)
    return (
        f"{module}.{name}" if path.with_suffix(".py").exists() or (path / "__init__.py").exists() else module
    )


MODULES = {module_name(file): file for file in FILES}
EDGES = {name: imports_of(file) for name, file in MODULES.items()}


@pytest.mark.parametrize("module", MODULES)
def test_no_import_points_upward(module):
    home = room(module)
    assert home in MAY_IMPORT, f"{home} is a new room: give it a row in MAY_IMPORT"
    rooms = {room(name) for name in EDGES[module] if name.split(".")[0] == "wordlight"} - {home}
    assert rooms <= MAY_IMPORT[home], f"{module} imports {sorted(rooms - MAY_IMPORT[home])}"


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_stay_where_they_are_used(module):
    named = {name.split(".")[0] for name in EDGES[module]}
    strays = sorted(package for package in named & set(HEAVY) if room(module) not in HEAVY[package])
    assert not strays, f"{module} imports {strays}"


def test_the_map_itself_points_one_way():
    tuple(TopologicalSorter(MAY_IMPORT).static_order())


def test_no_two_modules_import_each_other():
    graph = {name: {e for e in edges if e in MODULES and e != name} for name, edges in EDGES.items()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_image_text_models_and_light_never_meet():
    for side, other in (("clip", "radiance"), ("radiance", "clip")):
        seen = {name for module in MODULES if room(module) == side for name in EDGES[module]}
        assert other not in {room(name) for name in seen if name.startswith("wordlight")}


def test_command_and_viewer_are_imported_by_nothing_below():
    for module in MODULES:
        rooms = {room(name) for name in EDGES[module] if name.startswith("wordlight.")} - {room(module)}
        assert not rooms & {"viewer", "cli"} or room(module) in {"cli", "__main__"}


def run_python(code: str) -> None:
    """Run `code` in a fresh interpreter, as a user would."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr


def test_import_starts_nothing_heavy():
    late = sorted(set(HEAVY) - {"optax", "safetensors"})
    run_python(f"""
import sys, wordlight
loaded = sorted(set({late!r}) & set(sys.modules))
assert not loaded, f"import wordlight loads {{loaded}}"
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized(), "import wordlight starts a device"
""")


def test_public_names_start_nothing_either():
    run_python("""
import wordlight
for name in getattr(wordlight, "__all__", ()):
    getattr(wordlight, name)
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized(), "naming a function starts a device"
""")
