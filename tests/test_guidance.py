"""Guidance: prompts become fixed targets, and a traced image gets a loss with the right gradient."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from tiny_clip import EMBED, RESNET, SIZE, VIT, pictures, tiny_clip, tiny_tokenizer
from wordlight import losses
from wordlight.errors import WordlightError

KEY = jax.random.key(0)
PROMPTS = ["a red cat", "a yellow bulldozer"]
LOSSES = ("cosine", "spherical", "softmax")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_clip(VIT, tokenizer=tiny_tokenizer(tmp_path_factory.mktemp("words")))


def guide(model, prompts=PROMPTS, **options):
    return wl.Guidance.from_prompts(model, prompts, **options)


def test_the_text_tower_runs_once_and_is_dropped(model):
    guidance = guide(model)
    assert guidance.text_embeds.shape == (2, EMBED)
    assert guidance.negative_embeds.shape == (0, EMBED)
    assert "text" not in guidance.model.params
    np.testing.assert_array_equal(guidance.text_embeds, model.encode_text(PROMPTS))
    np.testing.assert_allclose(guidance.weights, [0.5, 0.5])


def test_one_prompt_may_be_a_string(model):
    image = pictures()
    loss, metrics = guide(model, "a red cat")(image, KEY)
    similarity = model.encode_image(image) @ model.encode_text("a red cat")[0]
    np.testing.assert_allclose(loss, -similarity, rtol=1e-4)
    np.testing.assert_allclose(metrics.similarity, similarity, rtol=1e-4)
    assert metrics.negative_similarity == -1


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_the_loss_is_the_mean_over_images_of_the_weighted_prompts(model, batch):
    images = pictures(*batch)
    loss, metrics = guide(model, weights=[3, 1])(images, KEY)
    cosines = (model.encode_image(images) @ model.encode_text(PROMPTS).T).reshape(-1, 2)
    expected = np.mean(cosines @ np.array([0.75, 0.25], "f4"))
    np.testing.assert_allclose(loss, -expected, rtol=1e-4)
    np.testing.assert_allclose(metrics.similarity, expected, rtol=1e-4)


@pytest.mark.parametrize("name", ["cosine", "spherical"])
def test_negatives_are_pushed_away_with_the_same_measure(model, name):
    image, negatives = pictures(), ["a green cat", "a mushroom"]
    guidance = guide(model, negatives=negatives, config=wl.GuidanceConfig(loss=name))
    embed, measure = model.encode_image(image), getattr(losses, name)
    wanted = np.mean([measure(embed, t) for t in model.encode_text(PROMPTS)])
    unwanted = np.mean([measure(embed, t) for t in model.encode_text(negatives)])
    loss, metrics = guidance(image, KEY)
    np.testing.assert_allclose(loss, wanted - unwanted, rtol=1e-3, atol=1e-5)
    highest = np.max(model.encode_text(negatives) @ embed)
    np.testing.assert_allclose(metrics.negative_similarity, highest, rtol=1e-4, atol=1e-5)


def test_softmax_makes_each_prompt_win_against_the_negatives(model):
    images = pictures(2)
    guidance = guide(model, negatives="a mushroom", config=wl.GuidanceConfig(loss="softmax"))
    logits = model.logits(model.encode_image(images), model.encode_text([*PROMPTS, "a mushroom"]))
    lost = [-jax.nn.log_softmax(logits[:, jnp.array([p, 2])])[:, 0] for p in range(2)]
    np.testing.assert_allclose(guidance(images, KEY)[0], np.mean(lost), rtol=1e-3)


@pytest.mark.parametrize(
    ("loss", "views"), [(loss, None) for loss in LOSSES] + [("cosine", wl.ViewConfig(count=2))]
)
def test_the_gradient_is_that_of_differences(model, loss, views):
    guidance = guide(model, negatives="a mushroom", config=wl.GuidanceConfig(loss=loss, views=views))
    image = pictures()
    value_and_grad = jax.jit(jax.value_and_grad(lambda i: guidance(i, KEY)[0]))
    gradient = value_and_grad(image)[1]
    direction = gradient / jnp.linalg.norm(gradient)
    ahead, behind = (value_and_grad(image + step * direction)[0] for step in (0.02, -0.02))
    numeric = (ahead - behind) / 0.04
    np.testing.assert_allclose(numeric, jnp.vdot(gradient, direction), rtol=0.05)


def test_descending_the_loss_raises_the_similarity(model):
    guidance = guide(model, "a red cat")
    step = jax.jit(jax.value_and_grad(lambda i: guidance(i, KEY), has_aux=True))
    image = pictures()
    seen = []
    for _ in range(5):
        (_, metrics), gradient = step(image)
        image = image - 0.3 * gradient / jnp.linalg.norm(gradient)
        seen.append(float(metrics.similarity))
    assert seen == sorted(seen)


def test_a_resnet_guides_as_well(tmp_path):
    guidance = guide(tiny_clip(RESNET, tokenizer=tiny_tokenizer(tmp_path)))
    gradient = jax.grad(lambda i: guidance(i, KEY)[0])(pictures())
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0


# Views


def test_views_are_drawn_from_the_key(model):
    guidance = guide(model, config=wl.GuidanceConfig(views=wl.ViewConfig(count=4)))
    assert guidance.encode(pictures(), KEY).shape == (4, EMBED)
    assert guidance.encode(pictures(2), KEY).shape == (4, 2, EMBED)
    embeds = guidance.encode(pictures(), KEY)
    np.testing.assert_array_equal(embeds, guidance.encode(pictures(), KEY))
    assert np.abs(embeds - guidance.encode(pictures(), jax.random.key(1))).max() > 1e-4
    assert np.abs(embeds[0] - embeds[1]).max() > 1e-4


def test_without_views_the_key_means_nothing(model):
    guidance = guide(model)
    assert guidance(pictures(), KEY)[0] == guidance(pictures(), jax.random.key(1))[0]


def test_a_view_that_changes_nothing_is_the_image_itself(model):
    still = wl.ViewConfig(zoom=(1.0, 1.0), shift=0.0, blur=(1.0, 1.0), noise=0.0)
    image = pictures(size=(SIZE, SIZE))
    seen = guide(model, config=wl.GuidanceConfig(views=still)).encode(image, KEY)[0]
    np.testing.assert_allclose(seen, model.encode_image(image), atol=1e-4)


# A value like any other


def test_a_guidance_goes_through_jit_and_vmap(model):
    guidance, images = guide(model, negatives="a mushroom"), pictures(3)
    keys = jax.random.split(KEY, 3)
    plain = [guidance(image, key)[0] for image, key in zip(images, keys, strict=True)]
    call = jax.jit(lambda g, i, k: g(i, k)[0])
    np.testing.assert_allclose(
        [call(guidance, *both) for both in zip(images, keys, strict=True)], plain, atol=1e-5
    )
    np.testing.assert_allclose(jax.vmap(lambda i, k: guidance(i, k)[0])(images, keys), plain, atol=1e-5)
    again = jax.tree.unflatten(jax.tree.structure(guidance), jax.tree.leaves(guidance))
    np.testing.assert_allclose(again(images[0], keys[0])[0], plain[0], atol=1e-5)


def test_prompts_are_an_axis_to_map_over(model):
    guidances = [guide(model, prompt) for prompt in PROMPTS]
    embeds = jnp.stack([g.text_embeds for g in guidances])
    image = pictures()
    mapped = jax.vmap(lambda e: replace(guidances[0], text_embeds=e)(image, KEY)[0])(embeds)
    np.testing.assert_allclose(mapped, [g(image, KEY)[0] for g in guidances], atol=1e-5)


def test_another_prompt_of_the_same_kind_compiles_nothing(model):
    traces = []

    @jax.jit
    def value(guidance, image):
        traces.append(image.shape)
        return guidance(image, KEY)[0]

    first = value(guide(model, "a red cat"), pictures())
    second = value(guide(model, "a green mushroom"), pictures())
    assert len(traces) == 1
    assert first != second


def test_nothing_calls_back_and_no_weight_is_a_constant(model):
    guidance = guide(model, config=wl.GuidanceConfig(views=wl.ViewConfig(count=2)))
    closed = jax.make_jaxpr(lambda g, i: g(i, KEY))(guidance, pictures())
    assert "callback" not in str(closed)
    weights = [leaf for leaf in jax.tree.leaves(guidance) if leaf.size > 1000]
    assert not any(np.array_equal(leaf, constant) for leaf in weights for constant in closed.consts)


# Ranges and layouts


def test_the_same_picture_in_every_range_and_layout(model):
    image = pictures()
    expected = guide(model)(image, KEY)[0]
    for value_range, shown in (("byte", 255 * image), ("signed", 2 * image - 1)):
        config = wl.GuidanceConfig(value_range=value_range)
        np.testing.assert_allclose(guide(model, config=config)(shown, KEY)[0], expected, atol=1e-4)
    first = guide(model, config=wl.GuidanceConfig(layout="CHW"))
    np.testing.assert_allclose(first(jnp.moveaxis(image, -1, 0), KEY)[0], expected, atol=1e-5)


# Refusals


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ("", {}, r"empty text.*unset variable.*Say what"),
        ("  \n", {}, "empty text"),
        ([], {}, "there is none"),
        (["a cat", ""], {}, r"\['a cat', ''\]"),
        ("a cat", {"negatives": [" "]}, r"negatives \[' '\] hold an empty text"),
        (
            ["a cat", "a mushroom"],
            {"weights": [1.0]},
            r"\[1.0\] do not go with 2 prompts.*one positive number",
        ),
        ("a cat", {"weights": [-1.0]}, r"\[-1.0\].*Push texts away with negatives"),
        ("a cat", {"weights": [0.0]}, "one positive number"),
        ("a cat", {"weights": [float("nan")]}, "one positive number"),
        ("a cat", {"weights": [float("inf")]}, "one positive number"),
        (
            "a cat",
            {"config": wl.GuidanceConfig(loss="softmax")},
            r"no negatives.*always zero.*Give negatives",
        ),
        ("a blue dragon", {}, r"Unknown words 'blue', 'dragon'.*It knows: a, bulldozer, cat"),
    ],
)
def test_prompts_that_cannot_be_are_refused(model, prompts, options, message):
    with pytest.raises(WordlightError, match=message):
        guide(model, prompts, **options)


@pytest.mark.usefixtures("unchecked")
def test_a_loss_that_is_not_there_is_refused():
    with pytest.raises(
        WordlightError, match=r"no guidance loss 'cosin'.*misspelt.*cosine, spherical, softmax"
    ):
        wl.GuidanceConfig(loss="cosin")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "count 0 cannot be"),
        ({"zoom": (0.0, 1.0)}, r"zoom \(0.0, 1.0\).*positive"),
        ({"zoom": (1.2, 1.0)}, "lower end first"),
        ({"blur": (0.5, 1.0)}, r"blur \(0.5, 1.0\).*at least 1"),
        ({"shift": -0.1}, "must not be negative"),
        ({"noise": float("nan")}, "must not be negative"),
    ],
)
def test_views_that_cannot_be_are_refused(options, message):
    with pytest.raises(WordlightError, match=message):
        wl.ViewConfig(**options)


@pytest.mark.parametrize("options", [{"value_range": "byte"}, {"layout": "CHW"}])
def test_views_of_other_ranges_are_refused(options):
    with pytest.raises(WordlightError, match=r"Random views.*defined on \[0, 1\].*set views to None"):
        wl.GuidanceConfig(views=wl.ViewConfig(), **options)


def test_views_of_integers_are_refused(model):
    guidance = guide(model, config=wl.GuidanceConfig(views=wl.ViewConfig()))
    with pytest.raises(WordlightError, match=r"dtype uint8.*no gradient.*Divide bytes by 255"):
        guidance(jnp.zeros((8, 8, 3), jnp.uint8), KEY)


@pytest.mark.parametrize("views", [None, wl.ViewConfig()])
def test_images_with_four_channels_are_refused(model, views):
    with pytest.raises(WordlightError, match="4 channels"):
        guide(model, config=wl.GuidanceConfig(views=views))(jnp.zeros((8, 8, 4)), KEY)
