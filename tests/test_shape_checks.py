"""The checks that the other tests rely on are on, and stay out of JAX's way."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from wordlight.radiance.cameras import Camera, look_at, orbit


@pytest.fixture(autouse=True)
def _only_with_checks(request):
    if request.config.getoption("--no-shape-checks"):
        pytest.skip("shape checks are off")


def test_a_wrong_shape_is_named():
    with pytest.raises(Exception, match=r"position|shape"):
        look_at(jnp.zeros(2), jnp.zeros(3))


def test_registered_dataclasses_hold_any_leaves():
    shapes = jax.tree.map(jnp.shape, orbit(0.0, 0.0))
    assert isinstance(shapes, Camera)
    assert shapes.pose == (3, 4)


def test_checked_functions_trace():
    def height(azimuth):
        return orbit(azimuth, 0.5).pose[2, 3]

    heights = jax.jit(jax.vmap(jax.value_and_grad(height)))(jnp.arange(3.0))[0]
    assert jnp.allclose(heights, 3.2 * jnp.sin(0.5))


def test_four_devices():
    assert jax.device_count() == 4


def test_rank_promotion_is_refused():
    with pytest.raises(ValueError, match="rank"):
        jnp.add(jnp.zeros((2, 3)), jnp.zeros(3))


def test_users_run_without_the_checks():
    code = "import sys, wordlight.radiance.cameras; assert 'beartype' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
