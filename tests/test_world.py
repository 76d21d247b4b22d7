"""The procedural world: shapes, tracing, colours, captions, distractors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wordlight import augment
from wordlight.data.world import captions, dataset
from wordlight.data.world.colours import COLOUR_NAMES, COLOUR_VALUES, other
from wordlight.data.world.compose import compose
from wordlight.data.world.distractors import DISTRACTOR_CAPTIONS, distractors
from wordlight.data.world.objects import KIND_NAMES, KINDS, Kind, Parts
from wordlight.data.world.shapes import Point, box, cone, cylinder, sphere, torus
from wordlight.data.world.trace import BOUND, Views, sample_views, trace, unpack

BACKGROUNDS = (
    augment.noise_background,
    augment.checker_background,
    augment.smooth_background,
    augment.solid_background,
    augment.random_background,
)


@pytest.fixture(scope="module")
def table():
    return jnp.asarray(dataset.render_table(5, 8))


def points(rng, count, radius=1.2):
    return Point(*jnp.asarray(rng.uniform(-radius, radius, (3, count)), jnp.float32))


def test_there_are_24_kinds_and_10_colours():
    assert len(KINDS) == len(set(KIND_NAMES)) == 24
    assert {"bulldozer", "car", "chair", "mushroom"} <= set(KIND_NAMES)
    assert len(COLOUR_NAMES) == len(COLOUR_VALUES) == 10


@pytest.mark.parametrize(
    ("solid", "expected"),
    [
        (lambda p: sphere(p, 0.5), 1.5),
        (lambda p: box(p, 0.5, 1.0, 1.0), 1.5),
        (lambda p: cylinder(p, 0.5, 1.0), 1.5),
        (lambda p: cone(p, 0.5, 0.5, 1.0), 1.5),
        (lambda p: torus(p, 0.75, 0.25), 1.0),
    ],
)
def test_distance_from_two_units_along_x(solid, expected):
    p = Point(jnp.array([2.0]), jnp.array([0.0]), jnp.array([0.0]))
    np.testing.assert_allclose(solid(p), [expected], rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_no_distance_grows_faster_than_the_way_walked(kind):
    rng = np.random.default_rng(0)
    start, step = points(rng, 4000), rng.normal(size=(3, 4000))
    step = jnp.asarray(0.02 * step / np.linalg.norm(step, axis=0), jnp.float32)
    vary = tuple(jnp.asarray(rng.uniform(-1, 1, 4), jnp.float32))
    here, there = kind.parts(start, vary), kind.parts(Point(*(jnp.stack(start) + step)), vary)
    change = np.abs(np.stack(there) - np.stack(here))
    assert change.max() <= 0.02 * 1.001 + 1e-6


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
@pytest.mark.parametrize("vary", [-1.0, 0.0, 1.0])
def test_objects_stay_in_the_bounding_ball(kind, vary):
    p = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4000)), jnp.float32)
    on_ball = Point(*(BOUND * p / jnp.linalg.norm(p, axis=0, keepdims=True)))
    assert kind.parts(on_ball, (jnp.array(vary),) * 4).distance().min() > 0


def test_views_look_from_all_round_and_from_above():
    views = sample_views(jax.random.key(0), 4000)
    degrees = np.degrees(views.elevation)
    assert np.ptp(views.azimuth) > 6.2
    assert -10 <= degrees.min() < -8
    assert 80 < degrees.max() <= 85
    assert 0.08 < np.mean(degrees > 60) < 0.2


def test_every_view_shows_an_object_that_is_not_cut_off(table):
    coverage, normals = unpack(table)
    opacity = np.asarray(coverage.sum(-1))
    assert opacity.max() <= 1.0
    assert opacity.mean((2, 3)).min() > 0.015
    border = np.concatenate([opacity[..., 0], opacity[..., -1], opacity[..., 0, :], opacity[..., -1, :]], -1)
    assert np.mean(border.sum(-1) > 2) < 0.05
    lengths = np.linalg.norm(normals, axis=-1)[opacity > 0]
    np.testing.assert_allclose(lengths, 1.0, atol=0.02)


def test_most_of_each_kind_is_primary(table):
    coverage, _ = unpack(table)
    area = np.asarray(coverage.sum((1, 2, 3)))
    share = dict(zip(KIND_NAMES, area[:, 0] / area.sum(-1), strict=True))
    assert min(share.values()) > 0.5, share
    assert np.mean(list(share.values())) > 0.7


def test_normals_face_the_camera(table):
    """The mean normal of a view lies on the camera's side."""
    views = dataset.table_views(5, KIND_NAMES.index("snowman"), 8)
    coverage, normals = unpack(table[KIND_NAMES.index("snowman")])
    mean = np.asarray((normals * coverage.sum(-1, keepdims=True)).sum((1, 2)))
    level, azimuth = np.cos(views.elevation), views.azimuth
    camera = np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(views.elevation)], -1)
    cosine = (mean * camera).sum(-1) / np.linalg.norm(mean, axis=-1)
    assert cosine.min() > 0.8


def test_a_traced_ball_has_the_area_of_its_outline():
    """A ball of radius r at distance d covers a disc of radius f * r / sqrt(d^2 - r^2) pixels."""
    views = Views(*jax.tree.map(jnp.zeros_like, sample_views(jax.random.key(0), 1)))
    views = views._replace(radius=jnp.array([3.2]), field_of_view=jnp.array([0.7]), scale=jnp.array([1.0]))
    gbuffer = trace(BALL, views)
    radius = 32 / np.tan(0.35) * 0.8 / np.sqrt(3.2**2 - 0.8**2)
    area = float(unpack(gbuffer)[0].sum())
    assert area == pytest.approx(np.pi * radius**2, rel=0.02)
    centre = np.asarray(unpack(gbuffer)[1][0, 31:33, 31:33].mean((0, 1)))
    np.testing.assert_allclose(centre, [1, 0, 0], atol=0.03)


def ball(p, _vary):
    far = jnp.full_like(p.x, 10.0)
    return Parts(sphere(p, 0.8), far, far)


BALL = Kind("ball", ball)


def test_same_seed_same_table_and_the_cache_holds_it(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "KINDS", (BALL,))
    first, again = dataset.render_table(7, 3), dataset.render_table(7, 3, cache=tmp_path)
    np.testing.assert_array_equal(first, again)
    monkeypatch.setattr(dataset, "trace", None)  # a cached table is not traced
    np.testing.assert_array_equal(first, dataset.render_table(7, 3, cache=tmp_path))
    assert [f.suffix for f in tmp_path.iterdir()] == [".npy"]


def test_other_seed_other_table():
    assert not np.allclose(dataset.table_views(1, 0, 4).azimuth, dataset.table_views(2, 0, 4).azimuth)
    assert not np.allclose(dataset.table_views(1, 0, 4).azimuth, dataset.table_views(1, 1, 4).azimuth)


pictures = jax.jit(compose)


def flat(table):
    return table.reshape(-1, *table.shape[2:])


def test_pictures_are_in_range_and_repeatable(table):
    gbuffer, colours = flat(table), jnp.arange(24 * 8) % 10
    images = pictures(jax.random.key(0), gbuffer, colours)
    assert images.shape == (192, 64, 64, 3)
    assert np.isfinite(images).all()
    assert images.min() >= 0
    assert images.max() <= 1
    np.testing.assert_array_equal(images, pictures(jax.random.key(0), gbuffer, colours))


def test_composing_compiles_once(table, caplog):
    gbuffer, colours = flat(table), jnp.arange(24 * 8) % 10
    pictures(jax.random.key(0), gbuffer, colours)
    with jax.log_compiles(), caplog.at_level("WARNING"):
        pictures(jax.random.key(1), gbuffer[::-1], colours)
    assert not [r for r in caplog.records if "compose" in r.getMessage()]


def test_the_primary_area_has_the_named_colour(table):
    gbuffer = flat(table)
    primary = np.asarray(unpack(gbuffer)[0][..., :1]) > 0.99
    means = []
    for colour in range(10):
        images = np.asarray(pictures(jax.random.key(colour), gbuffer, jnp.full(24 * 8, colour)))
        mean = (images * primary).sum((1, 2)) / np.maximum(primary.sum((1, 2)), 1)
        means.append(mean.reshape(24, 8, 3).mean(1))
    means = np.stack(means, axis=1)
    away = np.linalg.norm(means[:, :, None] - np.array(COLOUR_VALUES)[None, None], axis=-1)
    assert (away.argmin(-1) == np.arange(10)).all()


def test_untextured_pictures_are_grey_where_the_object_is(table):
    gbuffer, colours = flat(table)[:20], jnp.arange(20) % 10
    textured = jnp.arange(20) < 10
    images = np.asarray(pictures(jax.random.key(0), gbuffer, colours, textured=textured))
    covered = np.asarray(unpack(gbuffer)[0].sum(-1)) > 0.999
    spread = np.ptp(images, axis=-1)
    assert max(spread[i][covered[i]].max() for i in range(10, 20)) < 0.01
    assert spread[0][covered[0]].max() > 0.5


def test_a_given_background_stands_behind(table):
    background = jnp.full((4, 64, 64, 3), 0.25)
    images = pictures(jax.random.key(0), flat(table)[:4], jnp.arange(4), background=background)
    empty = np.asarray(unpack(flat(table)[:4])[0].sum(-1)) == 0
    np.testing.assert_allclose(np.asarray(images)[empty], 0.25)


def test_the_second_colour_is_never_the_first():
    first = jnp.arange(1000) % 10
    second = np.asarray(other(jax.random.uniform(jax.random.key(0), (1000,)), first))
    assert (second != np.asarray(first)).all()
    assert set(second.tolist()) == set(range(11))


@pytest.mark.parametrize("make", BACKGROUNDS)
def test_backgrounds_differ_from_image_to_image_and_stay_in_range(make):
    images = np.asarray(make(jax.random.key(0), (2, 3), 17, 23))
    assert images.shape == (2, 3, 17, 23, 3)
    assert images.min() >= 0
    assert images.max() <= 1
    rows = images.reshape(6, -1)
    assert all(np.abs(rows[i] - rows[j]).max() > 0.05 for i in range(6) for j in range(i))


@pytest.mark.parametrize("make", BACKGROUNDS)
def test_backgrounds_work_under_vmap_and_jit(make):
    keys = jax.random.split(jax.random.key(0), 3)
    batched = jax.jit(jax.vmap(lambda key: make(key, (), 16, 24)))(keys)
    alone = jnp.stack([make(key, (), 16, 24) for key in keys])
    np.testing.assert_allclose(batched, alone, atol=1e-6)


def test_checker_has_two_colours_and_solid_one():
    checker = np.asarray(augment.checker_background(jax.random.key(0), (4,), 32, 32)).reshape(4, -1, 3)
    solid = np.asarray(augment.solid_background(jax.random.key(0), (4,), 32, 32)).reshape(4, -1, 3)
    assert [len(np.unique(c.round(4), axis=0)) for c in checker] == [2] * 4
    assert [len(np.unique(c, axis=0)) for c in solid] == [1] * 4


def test_random_background_draws_every_kind():
    images = np.asarray(augment.random_background(jax.random.key(0), (64,), 32, 32))
    colours = np.array([len(np.unique(i.reshape(-1, 3).round(4), axis=0)) for i in images])
    assert {1, 2} <= set(colours.tolist())
    assert np.mean(colours > 2) > 0.3


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("a orange airplane", "an orange airplane"),
        ("an red car", "a red car"),
        ("a photo of a airplane", "a photo of an airplane"),
        ("an image of a orange object", "an image of an orange object"),
    ],
)
def test_articles(text, right):
    assert captions.with_articles(text) == right


def test_canonical_captions():
    assert len(set(captions.all_captions())) == 240
    assert captions.all_captions()[KIND_NAMES.index("bulldozer") * 10 + 2] == "a yellow bulldozer"
    assert captions.kind_captions()[0] == "an airplane"


def test_captions_name_what_they_are_given_and_stay_in_the_vocabulary():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        kind, colour = str(rng.choice(["", *KIND_NAMES])), str(rng.choice(COLOUR_NAMES))
        words = set(captions.pick_caption(rng, kind=kind, colour=colour).split())
        assert words <= set(captions.VOCABULARY)
        assert words & set(KIND_NAMES) == {kind} - {""}
        assert words & set(COLOUR_NAMES) == {colour}


def test_without_a_colour_captions_name_the_kind_alone():
    rng = np.random.default_rng(0)
    for _ in range(100):
        words = set(captions.pick_caption(rng, kind="duck").split())
        assert "duck" in words
        assert not words & set(COLOUR_NAMES)


def test_vocabulary_is_sorted_unique_lower_case_and_holds_everything():
    assert list(captions.VOCABULARY) == sorted(set(captions.VOCABULARY))
    assert all(word == word.lower() and " " not in word for word in captions.VOCABULARY)
    assert {*KIND_NAMES, *COLOUR_NAMES, "a", "an", "smoke", "fog", "blob"} <= set(captions.VOCABULARY)


def test_distractors_are_in_range_and_of_every_class():
    images, index = jax.jit(distractors, static_argnums=1)(jax.random.key(0), 64)
    assert images.shape == (64, 64, 64, 3)
    assert np.isfinite(images).all()
    assert images.min() >= 0
    assert images.max() <= 1
    assert set(np.asarray(index).tolist()) == set(range(len(DISTRACTOR_CAPTIONS)))


def test_distractor_captions_name_no_object():
    rng = np.random.default_rng(0)
    for index in range(len(DISTRACTOR_CAPTIONS)):
        words = set(captions.distractor_caption(rng, index).split())
        assert words <= set(captions.VOCABULARY)
        assert not words & {*KIND_NAMES, *COLOUR_NAMES}
