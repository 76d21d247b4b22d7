"""Prompts that follow the camera, and several models that look together."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from tiny_clip import CONTEXT, EMBED, RESNET, VIT, WORDS, pictures, tiny_clip, tiny_tokenizer
from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.tokenizer_files import write_word_level_tokenizer
from wordlight.errors import WordlightError
from wordlight.guidance import EnsembleMetrics, view_shares
from wordlight.radiance.cameras import orbit

KEY = jax.random.key(0)
PI = np.pi
VIEW_WORDS = ["back", "front", "overhead", "side", "view"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    write_word_level_tokenizer(folder, [*WORDS, *VIEW_WORDS], CONTEXT)
    vocabulary = VIT.text.vocab_size + len(VIEW_WORDS)
    config = replace(VIT, text=replace(VIT.text, vocab_size=vocabulary, end_id=vocabulary - 1))
    return tiny_clip(config, tokenizer=Tokenizer.from_folder(folder))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return tiny_clip(RESNET, tokenizer=tiny_tokenizer(tmp_path_factory.mktemp("other")))


@pytest.fixture(scope="module")
def following(model):
    return wl.ViewDependentGuidance.from_prompts(model, ["a red cat", "a mushroom"], weights=[3, 1])


@pytest.fixture(scope="module")
def image():
    return pictures()


# The camera


@pytest.mark.parametrize(
    ("azimuth", "elevation", "shares"),
    [
        (0, 0, [1, 0, 0, 0]),
        (PI / 2, 0, [0, 1, 0, 0]),
        (-PI / 2, 0.5, [0, 1, 0, 0]),
        (3 * PI / 2, 0, [0, 1, 0, 0]),
        (PI, 0, [0, 0, 1, 0]),
        (-PI, 0, [0, 0, 1, 0]),
        (PI / 4, -0.3, [0.5, 0.5, 0, 0]),
        (-PI / 6, 0, [2 / 3, 1 / 3, 0, 0]),
        (5 * PI / 6, 0, [0, 1 / 3, 2 / 3, 0]),
        (2 * PI, 0, [1, 0, 0, 0]),
        (20 * PI + PI / 4, 0, [0.5, 0.5, 0, 0]),
        (PI, np.deg2rad(59.9), [0, 0, 1, 0]),
        (PI, np.deg2rad(60.1), [0, 0, 0, 1]),
        (0, PI / 2, [0, 0, 0, 1]),
    ],
)
def test_shares_of_front_side_back_and_overhead(azimuth, elevation, shares):
    np.testing.assert_allclose(view_shares(azimuth, elevation), shares, atol=1e-5)


def test_shares_sum_to_one_and_slide_with_azimuth():
    azimuth = jnp.linspace(-7, 7, 200)[:, None]
    elevation = jnp.array([-1.5, 0.0, 1.0, 1.2])[None]
    shares = view_shares(azimuth, elevation)
    assert shares.shape == (200, 4, 4)
    np.testing.assert_allclose(shares.sum(-1), 1, atol=1e-6)
    assert shares.min() >= 0
    assert np.abs(np.diff(shares, axis=0)).max() < 0.06


def test_the_front_is_where_an_orbit_starts_and_sides_are_left_and_right():
    front, left, back = (orbit(azimuth, 0.0).pose[:, 3] for azimuth in (0.0, PI / 2, PI))
    assert front[0] > 3
    assert left[1] > 3
    assert back[0] < -3


def test_the_gradient_in_azimuth_is_that_of_differences_and_finite_at_the_corners(following):
    def total(azimuth, elevation):
        return jnp.sum(following.prompt_embeds(azimuth, elevation)[0] * jnp.arange(EMBED))

    slope = jax.jit(jax.grad(total))
    numeric = (total(0.72, 0.1) - total(0.68, 0.1)) / 0.04
    np.testing.assert_allclose(slope(0.7, 0.1), numeric, rtol=0.02)
    for azimuth in (0.0, PI / 2, PI, -PI, 2 * PI):
        assert np.isfinite(slope(azimuth, 0.1))
    assert slope(0.7, 1.3) == 0
    assert jax.grad(total, argnums=1)(0.7, PI / 3) == 0


# The prompts


def test_every_prompt_is_embedded_from_four_sides(model, following):
    texts = [
        "a red cat, front view",
        "a mushroom, front view",
        "a red cat, side view",
        "a mushroom, side view",
    ]
    texts += ["a red cat, back view", "a mushroom, back view"]
    texts += ["a red cat, overhead view", "a mushroom, overhead view"]
    assert following.view_embeds.shape == (4, 2, EMBED)
    np.testing.assert_allclose(following.view_embeds.reshape(8, EMBED), model.encode_text(texts), atol=1e-5)


def test_between_two_sides_lies_their_normalised_mixture(following):
    front, side, _, overhead = following.view_embeds
    mixture = 0.75 * front + 0.25 * side
    expected = mixture / jnp.linalg.norm(mixture, axis=-1, keepdims=True)
    np.testing.assert_allclose(following.prompt_embeds(PI / 8, 0.2), expected, atol=1e-5)
    np.testing.assert_allclose(following.prompt_embeds(PI / 8, 1.3), overhead, atol=1e-5)
    assert following.prompt_embeds(jnp.zeros((5, 1)), jnp.zeros((1, 3))).shape == (5, 3, 2, EMBED)


def test_one_camera_gives_an_ordinary_guidance(model, following, image):
    loss, metrics = following(image, KEY, azimuth=PI, elevation=0.0)
    plain = wl.Guidance.from_prompts(model, ["a red cat, back view", "a mushroom, back view"], weights=[3, 1])
    np.testing.assert_allclose(loss, plain(image, KEY)[0], atol=1e-5)
    np.testing.assert_allclose(metrics.similarity, plain(image, KEY)[1].similarity, atol=1e-5)
    assert isinstance(following.at(0.0, 0.0), wl.Guidance)


def test_other_words_for_the_sides(model):
    phrases = ("red", "green", "yellow", "of a mushroom")
    guidance = wl.ViewDependentGuidance.from_prompts(model, "a cat", phrases=phrases)
    np.testing.assert_allclose(guidance.view_embeds[3], model.encode_text("a cat of a mushroom"), atol=1e-5)


def test_views_are_an_axis_to_map_over(following):
    images, keys = pictures(3), jax.random.split(KEY, 3)
    azimuth, elevation = jnp.array([0.1, 2.0, 4.0]), jnp.array([0.0, 0.3, 1.2])
    traces = []

    @jax.jit
    def mean_loss(guidance, images, keys, azimuth, elevation):
        traces.append(images.shape)
        look = lambda i, k, a, e: guidance(i, k, azimuth=a, elevation=e)[0]  # noqa: E731
        return jax.vmap(look)(images, keys, azimuth, elevation)

    mapped = mean_loss(following, images, keys, azimuth, elevation)
    alone = following(images[1], keys[1], azimuth=2.0, elevation=0.3)[0]
    np.testing.assert_allclose(mapped[1], alone, atol=1e-5)
    turned = mean_loss(
        replace(following, view_embeds=following.view_embeds[::-1]), images, keys, azimuth, elevation
    )
    assert len(traces) == 1
    assert np.abs(turned - mapped).max() > 1e-4
    gradient = jax.grad(lambda i: mean_loss(following, i, keys, azimuth, elevation).sum())(images)
    assert np.isfinite(gradient).all()
    closed = jax.make_jaxpr(mean_loss)(following, images, keys, azimuth, elevation)
    assert "callback" not in str(closed)


def test_many_cameras_at_once_are_refused(following):
    with pytest.raises(WordlightError, match=r"shapes \(3,\) and \(\) are more than one camera.*jax.vmap"):
        following.at(jnp.zeros(3), 0.0)


def test_words_the_model_does_not_know_are_refused(other):
    with pytest.raises(WordlightError, match=r"Unknown words 'back', 'front', 'overhead', 'side', 'view'"):
        wl.ViewDependentGuidance.from_prompts(other, "a cat")


# Several models


def together(model, other, **options):
    members = [
        wl.Guidance.from_prompts(model, "a red cat", negatives="a mushroom"),
        wl.Guidance.from_prompts(other, ["a red cat", "a cat"]),
    ]
    return members, wl.GuidanceEnsemble.from_guidances(members, **options)


def test_an_ensemble_is_the_weighted_sum_of_its_members(model, other, image):
    members, ensemble = together(model, other, weights=[2, 0.5])
    loss, metrics = ensemble(image, KEY)
    (one, seen), (two, also_seen) = (member(image, KEY) for member in members)
    np.testing.assert_allclose(loss, 2 * one + 0.5 * two, atol=1e-5)
    mean = 0.8 * seen.similarity + 0.2 * also_seen.similarity
    np.testing.assert_allclose(metrics.similarity, mean, atol=1e-5)
    np.testing.assert_allclose(metrics.members[1].similarity, also_seen.similarity, atol=1e-5)
    np.testing.assert_allclose(metrics.negative_similarity, seen.negative_similarity, atol=1e-5)
    assert isinstance(metrics, EnsembleMetrics)


def test_members_draw_views_of_their_own(model, image):
    member = wl.Guidance.from_prompts(model, "a cat", config=wl.GuidanceConfig(views=wl.ViewConfig()))
    _, metrics = wl.GuidanceEnsemble.from_guidances([member, member])(image, KEY)
    assert metrics.members[0].similarity != metrics.members[1].similarity


def test_an_ensemble_is_a_value_and_compiles_once(model, other, image):
    traces = []

    @jax.jit
    def step(ensemble, image):
        traces.append(image.shape)
        return jax.value_and_grad(lambda i: ensemble(i, KEY)[0])(image)

    _, first = together(model, other)
    _, second = together(model, other, weights=[1, 3])
    loss, gradient = step(first, image)
    assert step(second, image)[0] != loss
    assert len(traces) == 1
    assert np.isfinite(gradient).all()
    step_ahead = 0.02 * gradient / jnp.linalg.norm(gradient)
    numeric = (step(first, image + step_ahead)[0] - step(first, image - step_ahead)[0]) / 0.04
    np.testing.assert_allclose(numeric, jnp.linalg.norm(gradient), rtol=0.05)
    assert "callback" not in str(jax.make_jaxpr(step)(first, image))


def test_an_ensemble_of_view_dependent_guidances(following, image):
    ensemble = wl.GuidanceEnsemble.from_guidances([following.at(0.3, 0.1), following.at(0.3, 0.1)])
    loss = following(image, KEY, azimuth=0.3, elevation=0.1)[0]
    np.testing.assert_allclose(ensemble(image, KEY)[0], 2 * loss, atol=1e-5)


def test_a_source_goes_to_the_members_that_measure_a_change(model, other, image):
    source = pictures(seed=7)
    edit = wl.Guidance.from_edit(model, "a red cat", "a cat")
    plain = wl.Guidance.from_prompts(other, "a red cat")
    loss = wl.GuidanceEnsemble.from_guidances([edit, plain])(image, KEY, source=source)[0]
    np.testing.assert_allclose(loss, edit(image, KEY, source=source)[0] + plain(image, KEY)[0], atol=1e-5)
    with pytest.raises(WordlightError, match=r"no guidance measures a change.*add a Guidance.from_edit"):
        wl.GuidanceEnsemble.from_guidances([plain])(image, KEY, source=source)


def test_members_that_do_not_fit_are_refused(model):
    plain = wl.Guidance.from_prompts(model, "a cat")
    bytes_too = replace(plain, config=wl.GuidanceConfig(value_range="byte"))
    with pytest.raises(WordlightError, match=r"\('byte', 'HWC'\), \('unit', 'HWC'\).*same image"):
        wl.GuidanceEnsemble.from_guidances([plain, bytes_too])
    with pytest.raises(WordlightError, match=r"read images as \[\].*at least one"):
        wl.GuidanceEnsemble.from_guidances([])
    with pytest.raises(WordlightError, match=r"\[1.0\] do not go with 2 guidances"):
        wl.GuidanceEnsemble.from_guidances([plain, plain], weights=[1.0])
    with pytest.raises(WordlightError, match="one positive number"):
        wl.GuidanceEnsemble.from_guidances([plain], weights=[0.0])
