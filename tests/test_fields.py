"""Fields: what they hold at the start, at the edge, at extremes; how they grow and learn."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.test_util import check_grads

from wordlight.radiance import (
    DensityConfig,
    Field,
    GridConfig,
    GridField,
    MlpConfig,
    MlpField,
    VoxelConfig,
    VoxelField,
    density_normals,
)
from wordlight.radiance.fields import density

KEY = jax.random.key(0)
SMALL_GRID = GridConfig(resolutions=(4, 9), table_size=200, hidden=(8,), direction_degree=2)
FIELDS = [
    MlpField.init(KEY, MlpConfig(frequencies=2, hidden=(16, 16, 16), direction_degree=1)),
    VoxelField.init(KEY, VoxelConfig(resolution=5)),
    GridField.init(KEY, SMALL_GRID),
]
NAMES = [type(field).__name__ for field in FIELDS]
POINTS = jax.random.uniform(jax.random.key(1), (2, 6, 3), minval=-0.9, maxval=0.9)
DIRECTIONS = jnp.broadcast_to(jnp.array([0.0, 0.6, -0.8]), POINTS.shape)


def every_field(test):
    return pytest.mark.parametrize("field", FIELDS, ids=NAMES)(test)


@every_field
def test_a_field_gives_a_density_and_a_colour_in_range_for_every_point(field):
    densities, colours = field(POINTS, DIRECTIONS)
    assert isinstance(field, Field)
    assert densities.shape == (2, 6)
    assert colours.shape == (2, 6, 3)
    assert (densities > 0).all()
    assert (colours > 0).all()
    assert (colours < 1).all()


@every_field
def test_there_is_nothing_outside_the_cube(field):
    outside = POINTS.at[..., 1].set(1.01)
    np.testing.assert_array_equal(field(outside, DIRECTIONS).densities, 0)


@every_field
def test_a_fresh_field_is_densest_near_the_centre(field):
    middle = field(jnp.zeros((1, 3)), DIRECTIONS[0, :1]).densities
    corner = field(jnp.full((1, 3), 0.95), DIRECTIONS[0, :1]).densities
    assert middle > 4 * corner


@every_field
def test_every_parameter_of_a_fresh_field_can_move(field):
    points = jax.random.uniform(jax.random.key(2), (4000, 3), minval=-1, maxval=1)
    directions = jax.random.normal(jax.random.key(3), (4000, 3))
    directions = directions / jnp.linalg.norm(directions, axis=-1, keepdims=True)

    def loss(field):
        densities, colours = field(points, directions)
        return densities.sum() + (colours**2).sum()

    for leaf in jax.tree.leaves(jax.jit(jax.grad(loss))(field)):
        assert jnp.isfinite(leaf).all()
        assert (leaf != 0).mean() > 0.5


@every_field
def test_a_field_is_a_pytree_of_arrays_with_a_static_config(field):
    leaves, structure = jax.tree.flatten(field)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    assert hash(structure) == hash(jax.tree.structure(jax.tree.unflatten(structure, leaves)))
    doubled = jax.jit(lambda f: jax.tree.map(lambda x: 2 * x, f))(field)
    assert doubled.config == field.config


@every_field
@pytest.mark.parametrize("scale", [0.0, 1e-20, 30.0, 1e3])
def test_values_and_gradients_are_finite_for_any_parameters(field, scale):
    field = jax.tree.map(lambda leaf: leaf * scale, field)

    def loss(field, points):
        densities, colours = field(points, DIRECTIONS)
        return jnp.sum(1 - jnp.exp(-densities)) + jnp.sum(colours)

    value, gradients = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(field, POINTS)
    assert jnp.isfinite(value)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


@every_field
def test_the_same_key_gives_the_same_field(field):
    again = type(field).init(KEY, field.config)
    jax.tree.map(np.testing.assert_array_equal, again, field)


@every_field
def test_the_gradient_in_the_points_equals_differences(field):
    total = jax.jit(lambda points: jnp.sum(field(points, DIRECTIONS[0, :2]).densities))
    check_grads(total, (POINTS[0, :2],), order=1, modes=["rev"], rtol=3e-2, atol=1e-2, eps=1e-3)


def test_the_colour_depends_on_the_direction_only_when_asked_to():
    def change(field):
        return jnp.abs(field(POINTS, DIRECTIONS).colours - field(POINTS, -DIRECTIONS).colours).max()

    assert change(GridField.init(KEY, SMALL_GRID)) > 0
    assert change(GridField.init(KEY, GridConfig(resolutions=(4,)))) == 0
    assert change(MlpField.init(KEY)) == 0


# Density


def test_density_is_scale_times_the_activation_of_raw_bias_and_blob():
    config = DensityConfig(scale=2.0, bias=-1.0, blob_strength=3.0, blob_radius=0.5)
    point = jnp.array([[0.3, 0.0, -0.4]])
    expected = 2 * np.log1p(np.exp(0.7 - 1 + 3 * np.exp(-0.25 / 0.5)))
    np.testing.assert_allclose(density(jnp.array([0.7]), point, config), expected, rtol=1e-5)


@pytest.mark.parametrize("activation", ["softplus", "exp"])
def test_no_raw_density_is_dead_or_infinite(activation):
    config = DensityConfig(activation=activation)
    raw = jnp.array([-40.0, -10.0, 0.0, 50.0, 1e4])
    value, slope = jax.vmap(jax.value_and_grad(lambda r: density(r, jnp.zeros(3), config)))(raw)
    assert jnp.isfinite(value).all()
    assert (slope > 0).all()
    assert jnp.isfinite(slope).all()


def test_an_unknown_activation_is_refused():
    with pytest.raises(ValueError, match=r"'relu'.*never moves.*Use \"softplus\" or \"exp\""):
        DensityConfig(activation="relu")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("values", [{"scale": 0.0}, {"blob_radius": -1.0}])
def test_an_impossible_scale_or_radius_is_refused(values):
    with pytest.raises(ValueError, match=r"density scale is .* blob radius .*Pass positive numbers"):
        DensityConfig(**values)


def test_normals_of_a_ball_point_outwards():
    def ball(points, directions):
        return jnp.exp(-jnp.sum(points**2, axis=-1)), jnp.ones_like(points)

    normals = density_normals(ball, POINTS, DIRECTIONS)
    radial = POINTS / jnp.linalg.norm(POINTS, axis=-1, keepdims=True)
    np.testing.assert_allclose(normals, radial, atol=1e-5)


def test_normals_of_uniform_fog_are_zero():
    def fog(points, directions):
        return jnp.ones(points.shape[:-1]), jnp.ones_like(points)

    np.testing.assert_array_equal(density_normals(fog, POINTS, DIRECTIONS), 0)


# Grids


def test_voxels_are_what_they_store():
    config = VoxelConfig(resolution=3, density=DensityConfig(scale=1.0, bias=0.0, blob_strength=0.0))
    values = jnp.zeros((3, 3, 3, 4)).at[2, 1, 0].set(jnp.array([1.0, 2.0, -2.0, 0.0]))
    densities, colours = VoxelField(values, config)(jnp.array([[1.0, 0.0, -1.0]]), jnp.array([[1.0, 0, 0]]))
    np.testing.assert_allclose(densities, np.log1p(np.e), rtol=1e-5)
    np.testing.assert_allclose(colours, [[0.880797, 0.119203, 0.5]], atol=1e-5)


def test_a_refined_grid_holds_the_same_field():
    field = VoxelField.init(KEY, VoxelConfig(resolution=5, noise=1.0))
    finer = field.resampled(9)
    assert finer.config.resolution == 9
    before, after = field(POINTS, DIRECTIONS), finer(POINTS, DIRECTIONS)
    np.testing.assert_allclose(after.densities, before.densities, rtol=1e-3)
    np.testing.assert_allclose(after.colours, before.colours, atol=1e-4)


def test_a_grid_grown_from_20_to_40_keeps_a_linear_ramp_and_its_corners():
    axis = jnp.linspace(-1, 1, 20)
    ramp = jnp.stack(jnp.meshgrid(axis, 2 * axis, -axis, indexing="ij"), axis=-1)
    values = jnp.concatenate([ramp, ramp[..., :1]], axis=-1)
    grown = VoxelField(values, VoxelConfig(resolution=20)).resampled(40).values
    fine = jnp.linspace(-1, 1, 40)
    np.testing.assert_allclose(grown[:, 3, 5, 0], fine, atol=1e-5)
    np.testing.assert_allclose(grown[7, :, 5, 1], 2 * fine, atol=1e-5)
    np.testing.assert_allclose(grown[::39, ::39, ::39], values[::19, ::19, ::19], atol=1e-5)


def test_a_grid_field_learns_a_shape():
    config = GridConfig(resolutions=(4, 12), table_size=1000, hidden=(16,))
    points = jax.random.uniform(jax.random.key(5), (2000, 3), minval=-1, maxval=1)
    target = jnp.abs(points).max(axis=-1) < 0.6
    optimiser = optax.adam(0.03)

    def loss(field):
        densities, colours = field(points, points)
        return jnp.mean((1 - jnp.exp(-densities) - target) ** 2) + jnp.mean((colours[..., 0] - target) ** 2)

    @jax.jit
    def step(field, state):
        value, gradient = jax.value_and_grad(loss)(field)
        updates, state = optimiser.update(gradient, state)
        return jax.tree.map(jnp.add, field, updates), state, value

    field = GridField.init(KEY, config)
    state = optimiser.init(field)
    values = []
    for _ in range(120):
        field, state, value = step(field, state)
        values.append(float(value))
    assert values[-1] < 0.1 * values[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VoxelConfig(resolution=1), r"resolution 1 was asked for.*at least 2"),
        (lambda: GridConfig(resolutions=()), r"resolutions \(\) were asked for.*at least one resolution"),
        (lambda: GridConfig(resolutions=(8, 1)), r"resolutions \(8, 1\) were asked for.*each 2 or more"),
    ],
)
def test_impossible_grids_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
