"""What every test runs under: four CPU devices, strict shapes, no network, warnings as errors.

The variables are set before anything imports JAX; tests that start a process of their own pass them on.
"""

import os
import tempfile

_DEVICES = "--xla_force_host_platform_device_count=4"

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_DEVICES}".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
# A folder per run, so that what lies in the developer's own cache changes no result.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="wordlight-hub-")
os.environ.pop("HF_HUB_CACHE", None)

import jax
import jaxtyping
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-shape-checks",
        action="store_true",
        help="run the package as users do, without checking its annotations at every call",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--no-shape-checks"):
        install_import_hook("wordlight", "shape_checks.check")


@pytest.fixture(autouse=True)
def _no_leftover_config():
    """Undo what a test sets in jax.config, so that the order of tests means nothing."""
    before = {name: getattr(jax.config, name) for name in ("jax_enable_x64", "jax_debug_nans")}
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """A folder with a guide of random weights that knows the world's words. To be read only."""
    from tiny_runs import save_tiny_model  # after the hook above: it imports the package

    folder = tmp_path_factory.mktemp("guide") / "model"
    save_tiny_model(folder)
    return str(folder)


@pytest.fixture
def unchecked():
    """Reach the package's own refusals, as users do, without the annotations checked before them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
