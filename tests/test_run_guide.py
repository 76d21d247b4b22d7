"""What looks at a run's views: against which texts, in plain grey or in colours, from which side."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from tiny_runs import RUN, save_tiny_model
from wordlight.data.world.captions import GUIDE_WORDS, VOCABULARY
from wordlight.data.world.distorted import DISTORTED_CAPTIONS
from wordlight.radiance.cameras import orbit, orbit_angles
from wordlight.train.guide import can_read, contrast_texts, make_guidance, make_guide, plain_prompt

FRONT = jnp.array(0.0), jnp.array(0.2)
COLOURED, PLAIN = jnp.array(False), jnp.array(True)


@pytest.fixture(scope="module")
def knowing(tmp_path_factory):
    """A model with the words of the shipped guides."""
    return save_tiny_model(tmp_path_factory.mktemp("knowing") / "model", (*VOCABULARY, *GUIDE_WORDS))


def test_the_world_sees_a_prompt_against_all_captions_that_are_not_true(model_folder):
    model = wl.load(model_folder)
    texts = contrast_texts(model, replace(RUN, negatives=("fog", "a toy")))
    assert texts[:2] == ("fog", "a toy")
    assert {"a blue car", "a red chair", "smoke"} <= set(texts)
    assert "a red car" not in texts
    assert len(set(texts)) == len(texts)
    assert make_guidance(model, RUN).config.loss == "softmax"


def test_other_models_have_no_negatives_but_those_given(model_folder, monkeypatch):
    monkeypatch.setattr("wordlight.train.guide.knows_only_the_world", lambda model: False)
    model = wl.load(model_folder)
    alone = make_guidance(model, RUN)
    assert (alone.config.loss, len(alone.negative_embeds)) == ("cosine", 0)
    against = make_guidance(model, replace(RUN, negatives=("a blue car",)))
    assert (against.config.loss, len(against.negative_embeds)) == ("softmax", 1)


def test_a_plain_view_is_to_show_the_kind_without_its_colour(model_folder, monkeypatch):
    model = wl.load(model_folder)
    assert plain_prompt(model, "an orange airplane") == "an airplane"
    assert plain_prompt(model, "something red") == "something red"
    guide = make_guide([model], RUN)
    kinds = guide.for_view(jnp.array(True), *FRONT).text_embeds
    np.testing.assert_allclose(kinds, model.encode_text("a car"), atol=1e-6)
    coloured = guide.for_view(jnp.array(False), *FRONT).text_embeds
    np.testing.assert_allclose(coloured, model.encode_text("a red car"), atol=1e-6)
    monkeypatch.setattr("wordlight.train.guide.knows_only_the_world", lambda model: False)
    assert plain_prompt(model, "a red car") == "a red car"


def test_several_models_guide_together_with_an_equal_say(model_folder):
    model = wl.load(model_folder)
    image, key = jax.random.uniform(jax.random.key(0), (32, 32, 3)), jax.random.key(1)
    one = replace(RUN, guidance=replace(RUN.guidance, views=None))
    alone, both = make_guide([model], one), make_guide([model, model], one)
    coloured = (jnp.array(False), *FRONT)
    loss, metrics = both.for_view(*coloured)(image, key)
    expected, _ = alone.for_view(*coloured)(image, key)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert len(metrics.members) == 2


@pytest.mark.parametrize(
    ("degrees", "elevation", "text"),
    [
        (0, 0, "a red car, front view"),
        (90, 20, "a red car, side view"),
        (-90, 20, "a red car, side view"),
        (180, -5, "a red car, back view"),
        (180, 70, "a red car, overhead view"),
    ],
)
def test_a_view_is_to_show_the_prompt_from_the_side_of_its_camera(knowing, degrees, elevation, text):
    camera = orbit(np.deg2rad(degrees), np.deg2rad(elevation), radius=3.2)
    seen = make_guide([knowing], RUN).for_view(COLOURED, *orbit_angles(camera)).text_embeds
    np.testing.assert_allclose(seen, knowing.encode_text(text), atol=1e-5)


def test_a_plain_view_is_to_show_its_side_as_well(knowing):
    seen = make_guide([knowing], RUN).for_view(PLAIN, jnp.array(np.pi), jnp.array(0.0)).text_embeds
    np.testing.assert_allclose(seen, knowing.encode_text("a car, back view"), atol=1e-5)


def test_between_two_sides_a_view_is_to_show_their_mixture(knowing):
    seen = make_guide([knowing], RUN).for_view(COLOURED, jnp.array(np.pi / 4), jnp.array(0.0)).text_embeds
    mixture = knowing.encode_text(["a red car, front view", "a red car, side view"]).sum(axis=0)
    np.testing.assert_allclose(seen[0], mixture / jnp.linalg.norm(mixture), atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [{"sides": False}, {"prompt": "a red car, Side View"}, {"prompt": "a a a a a a a a red car"}],
    ids=["turned off", "named by the prompt", "no room for more words"],
)
def test_the_prompt_is_the_same_all_round_where_no_side_can_be_said(knowing, change):
    config = replace(RUN, **change)
    embeds = make_guide([knowing], config).view_embeds[0]
    expected = knowing.encode_text(config.prompt)
    np.testing.assert_allclose(embeds[0], jnp.broadcast_to(expected, embeds[0].shape), atol=1e-5)


def test_a_model_without_words_for_the_sides_reads_the_prompt_alone(model_folder):
    model = wl.load(model_folder)
    assert not can_read(model, ["a red car, side view"])
    embeds = make_guide([model], RUN).view_embeds[0]
    expected = model.encode_text(RUN.prompt)
    np.testing.assert_allclose(embeds[0], jnp.broadcast_to(expected, embeds[0].shape), atol=1e-5)


def test_guides_with_the_words_push_away_from_distorted_objects(knowing, model_folder):
    assert set(DISTORTED_CAPTIONS) <= set(contrast_texts(knowing, RUN))
    assert not set(DISTORTED_CAPTIONS) & set(contrast_texts(wl.load(model_folder), RUN))


@pytest.mark.parametrize("prompt", ["a distorted object", "a BROKEN car"])
def test_who_asks_for_a_distorted_object_may_have_one(knowing, prompt):
    assert not set(DISTORTED_CAPTIONS) & set(contrast_texts(knowing, replace(RUN, prompt=prompt)))


@pytest.mark.parametrize("name", RUN.models)
def test_the_shipped_guides_have_the_words(name):
    assert can_read(wl.load(name), ["a red car, side view", *DISTORTED_CAPTIONS])
