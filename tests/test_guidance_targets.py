"""Guidance by pictures, edits and pairs: each loss against its formula, and refused without its needs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from tiny_clip import VIT, pictures, tiny_clip, tiny_tokenizer
from wordlight import losses
from wordlight.errors import WordlightError
from wordlight.guidance import measures

KEY = jax.random.key(0)
PROMPTS = ["a red cat", "a yellow bulldozer"]
EDIT = wl.GuidanceConfig(loss="directional")
BIAS = -1.5


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_clip(VIT, tokenizer=tiny_tokenizer(tmp_path_factory.mktemp("words")))


@pytest.fixture(scope="module")
def siglip(model):
    return model.replace_params({**model.params, "logit_bias": jnp.float32(BIAS)})


@pytest.fixture(scope="module")
def image():
    return pictures()


def edit(model, **options):
    return wl.Guidance.from_edit(model, PROMPTS, "a green cat", **options)


def unit(seed: int, *shape: int) -> jax.Array:
    x = jax.random.normal(jax.random.key(seed), shape)
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


@jax.jit
def value_and_gradient(guidance, image, source):
    return jax.value_and_grad(lambda i: guidance(i, KEY, source=source)[0])(image)


def slope_error(loss, image):
    """How far the gradient is from a difference along itself, relatively."""
    value_and_grad = jax.jit(jax.value_and_grad(loss))
    gradient = value_and_grad(image)[1]
    length = jnp.linalg.norm(gradient)
    assert np.isfinite(length)
    assert length > 0
    step = 0.02 * gradient / length
    ahead, behind = value_and_grad(image + step)[0], value_and_grad(image - step)[0]
    return abs((ahead - behind) / 0.04 / length - 1)


# Pictures


def test_an_image_is_a_target_like_a_prompt(model, image):
    shown = pictures(3, seed=5)
    guidance = wl.Guidance.from_images(model, shown, weights=[2, 1, 1])
    np.testing.assert_allclose(guidance.text_embeds, model.encode_image(shown), atol=1e-6)
    assert "text" not in guidance.model.params
    loss, metrics = guidance(image, KEY)
    cosines = model.encode_image(shown) @ model.encode_image(image)
    np.testing.assert_allclose(metrics.similarity, cosines @ np.array([0.5, 0.25, 0.25]), rtol=1e-4)
    np.testing.assert_allclose(loss, -metrics.similarity, rtol=1e-5)


def test_the_loss_of_an_image_target_is_the_consistency_but_for_a_constant(model, image):
    shown = pictures(seed=5)
    loss = wl.Guidance.from_images(model, shown)(image, KEY)[0]
    expected = losses.consistency(model.encode_image(image), model.encode_image(shown))
    np.testing.assert_allclose(1 + loss, expected, atol=1e-5)
    assert slope_error(lambda i: wl.Guidance.from_images(model, shown)(i, KEY)[0], image) < 0.05


def test_the_target_itself_has_the_least_loss_and_a_finite_gradient(model, image):
    for name, least in (("cosine", -1.0), ("spherical", 0.0)):
        guidance = wl.Guidance.from_images(model, image, config=wl.GuidanceConfig(loss=name))
        loss, gradient = value_and_gradient(guidance, image, None)
        np.testing.assert_allclose(loss, least, atol=1e-5)
        assert np.isfinite(gradient).all()


def test_pictures_of_unlike_sizes_ranges_and_layouts(model):
    small, large = pictures(seed=5), pictures(seed=6, size=(33, 50))
    together = wl.Guidance.from_images(model, [small, np.asarray(large)]).text_embeds
    np.testing.assert_allclose(together[0], model.encode_image(small), atol=1e-5)
    np.testing.assert_allclose(together[1], model.encode_image(large), atol=1e-5)
    bytes_first = np.moveaxis(np.round(255 * np.asarray(small)).astype(np.uint8), -1, 0)
    photo = wl.Guidance.from_images(model, bytes_first, value_range="byte", layout="CHW")
    np.testing.assert_allclose(photo.text_embeds[0], together[0], atol=1e-2)


def test_texts_and_images_share_the_weight(model, image):
    shown = pictures(2, seed=5)
    guidance = wl.Guidance.from_prompts(model, PROMPTS, weights=[3, 1]).with_images(shown, share=0.4)
    np.testing.assert_allclose(guidance.weights, [0.45, 0.15, 0.2, 0.2], rtol=1e-6)
    texts, images = (
        wl.Guidance.from_prompts(model, PROMPTS, weights=[3, 1]),
        wl.Guidance.from_images(model, shown),
    )
    expected = 0.6 * texts(image, KEY)[0] + 0.4 * images(image, KEY)[0]
    np.testing.assert_allclose(guidance(image, KEY)[0], expected, atol=1e-5)


# Edits


def test_an_edit_compares_what_changed(model, image):
    source = pictures(seed=7)
    loss, metrics = edit(model, source_images=source, weights=[3, 1])(image, KEY)
    change = model.encode_image(image) - model.encode_image(source)
    meant = model.encode_text(PROMPTS) - model.encode_text("a green cat")
    cosines = meant @ change / jnp.linalg.norm(change) / jnp.linalg.norm(meant, axis=-1)
    np.testing.assert_allclose(loss, 1 - cosines @ np.array([0.75, 0.25]), rtol=1e-3)
    similarities = model.encode_text(PROMPTS) @ model.encode_image(image)
    np.testing.assert_allclose(metrics.similarity, similarities @ np.array([0.75, 0.25]), rtol=1e-4)


def test_the_source_is_given_once_or_with_every_call(model):
    images, sources = pictures(2, seed=8), pictures(2, seed=9)
    for_all = edit(model)(images, KEY, source=sources[0])[0]
    once = edit(model, source_images=sources[0])(images, KEY)[0]
    np.testing.assert_allclose(for_all, once, atol=1e-5)
    each = edit(model)(images, KEY, source=sources)[0]
    alone = [edit(model)(i, KEY, source=s)[0] for i, s in zip(images, sources, strict=True)]
    np.testing.assert_allclose(each, np.mean(alone), atol=1e-5)
    mean = edit(model, source_images=sources).source.image_embed
    np.testing.assert_allclose(mean, jnp.mean(model.encode_image(sources), axis=0), atol=1e-5)


def test_every_prompt_may_have_its_own_source(model, image):
    pairs = wl.Guidance.from_edit(model, PROMPTS, ["a green cat", "a green bulldozer"])
    alone = [
        wl.Guidance.from_edit(model, after, before)(image, KEY, source=pictures(seed=7))[0]
        for after, before in zip(PROMPTS, ["a green cat", "a green bulldozer"], strict=True)
    ]
    np.testing.assert_allclose(pairs(image, KEY, source=pictures(seed=7))[0], np.mean(alone), atol=1e-5)


def test_source_and_image_are_seen_through_the_same_views(model, image):
    config = replace(EDIT, views=wl.ViewConfig(count=3))
    loss, gradient = value_and_gradient(edit(model, config=config), image, image)
    np.testing.assert_allclose(loss, 1.0, atol=5e-3)  # nothing changed, though views are drawn at random
    assert np.isfinite(gradient).all()


def test_the_gradient_of_an_edit_is_that_of_differences(model, image):
    guidance = edit(model, source_images=pictures(seed=7))
    assert slope_error(lambda i: guidance(i, KEY)[0], image) < 0.05


# Pairs


def test_sigmoid_is_one_row_of_the_table_of_pairs(siglip, image):
    negatives = ["a mushroom", "a green cat"]
    config = wl.GuidanceConfig(loss="sigmoid", pull=0.25)
    loss, _ = wl.Guidance.from_prompts(siglip, PROMPTS, negatives=negatives, config=config)(image, KEY)
    embed, scale = np.asarray(siglip.encode_image(image), "f8"), np.exp(2.0)
    wanted, unwanted = (np.asarray(siglip.encode_text(t), "f8") @ embed for t in (PROMPTS, negatives))
    pairs = np.log1p(np.exp(-scale * wanted - BIAS)) + np.log1p(np.exp(scale * unwanted + BIAS)).sum()
    np.testing.assert_allclose(loss, np.mean(pairs - 0.25 * wanted), rtol=1e-4)


def test_sigmoid_needs_no_negatives(siglip, image):
    guidance = wl.Guidance.from_prompts(siglip, "a cat", config=wl.GuidanceConfig(loss="sigmoid"))
    logit = np.exp(2.0) * np.dot(siglip.encode_image(image), siglip.encode_text("a cat")[0]) + BIAS
    np.testing.assert_allclose(guidance(image, KEY)[0], np.log1p(np.exp(-logit)), rtol=1e-4)
    assert slope_error(lambda i: guidance(i, KEY)[0], image) < 0.05


# All tables


TABLES = {
    "cosine": lambda v, p, n: measures.measured(losses.cosine, v, p, n),
    "spherical": lambda v, p, n: measures.measured(losses.spherical, v, p, n),
    "softmax": lambda v, p, n: measures.softmax(v, p, n, scale=100.0),
    "sigmoid": lambda v, p, n: measures.sigmoid(v, p, n, scale=100.0, bias=-10.0),
    "directional": lambda v, p, n: measures.directional(v, n[0], p, jnp.broadcast_to(n[0], p.shape)),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_hold_every_view_and_target(name):
    views, targets, negatives = unit(0, 4, 5, 8), unit(1, 3, 8), unit(2, 2, 8)
    table = jax.jit(TABLES[name])
    if name == "directional":
        shown = jnp.broadcast_to(negatives[0], views.shape)
        whole = measures.directional(views, shown, targets, jnp.broadcast_to(negatives[0], targets.shape))
    else:
        whole = table(views, targets, negatives)
    assert whole.shape == (4, 5, 3)
    np.testing.assert_allclose(whole[1, 2, 1], table(views[1, 2], targets[1:2], negatives)[0], rtol=2e-3)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_finite_at_the_extremes(name):
    east = jnp.eye(8)[0]
    special = jnp.stack([east, -east, jnp.zeros(8)])
    for view in special:
        value, gradients = jax.value_and_grad(
            lambda v, p: jnp.sum(TABLES[name](v, p, special[:1])), argnums=(0, 1)
        )(view, special)
        assert np.isfinite(value)
        assert all(np.isfinite(gradient).all() for gradient in gradients)


# Values like any other


def test_another_target_of_the_same_kind_compiles_nothing(model, siglip, image):
    traces = []

    @jax.jit
    def value(guidance, image):
        traces.append(image.shape)
        return guidance(image, KEY)[0]

    sigmoid = wl.GuidanceConfig(loss="sigmoid")
    makers = (
        lambda n: wl.Guidance.from_images(model, pictures(seed=n)),
        lambda n: wl.Guidance.from_edit(model, PROMPTS[n], "a mushroom", source_images=pictures(seed=7)),
        lambda n: wl.Guidance.from_prompts(siglip, PROMPTS[n], config=sigmoid),
    )
    for count, make in enumerate(makers, 1):
        assert value(make(0), image) != value(make(1), image)
        assert len(traces) == count


def test_an_edit_maps_over_images_with_their_sources(model):
    images, sources, keys = pictures(2, seed=8), pictures(2, seed=9), jax.random.split(KEY, 2)
    guidance = edit(model, config=replace(EDIT, views=wl.ViewConfig(count=2)))
    look = jax.jit(lambda g, i, k, s: g(i, k, source=s)[0])
    mapped = jax.vmap(look, in_axes=(None, 0, 0, 0))(guidance, images, keys, sources)
    np.testing.assert_allclose(mapped[1], look(guidance, images[1], keys[1], sources[1]), atol=1e-5)
    closed = jax.make_jaxpr(look)(guidance, images[0], KEY, sources[0])
    assert "callback" not in str(closed)
    weights = [leaf for leaf in jax.tree.leaves(guidance) if leaf.size > 1000]
    assert not any(np.array_equal(leaf, constant) for leaf in weights for constant in closed.consts)


# Refusals


def named(loss, **options):
    return {"config": wl.GuidanceConfig(loss=loss, **options)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda m: wl.Guidance.from_prompts(m, "a cat", **named("directional")),
            r"needs a source, and prompts alone have none.*Guidance.from_edit",
        ),
        (
            lambda m: wl.Guidance.from_prompts(m, "a cat", **named("sigmoid")),
            r"needs a logit bias.*as CLIP is.*SigLIP model",
        ),
        (
            lambda m: wl.Guidance.from_images(m, pictures(), **named("softmax")),
            r"Target images do not go with the softmax loss.*closer to each other.*GuidanceEnsemble",
        ),
        (lambda m: wl.Guidance.from_images(m, []), r"no pictures to embed.*Give at least one"),
        (
            lambda m: wl.Guidance.from_images(m, [pictures(), jnp.nan * pictures()]),
            r"pictures \[1\] have no direction.*failed render.*Look at them",
        ),
        (
            lambda m: wl.Guidance.from_images(m, pictures(2), weights=[1.0]),
            r"\[1.0\] do not go with 2 images",
        ),
        (lambda m: wl.Guidance.from_images(m, jnp.zeros((8, 8, 4))), r"4 channels"),
        (
            lambda m: wl.Guidance.from_prompts(m, "a cat").with_images(pictures(), share=1.0),
            r"share of 1.0.*above 0 and below 1.*from_images",
        ),
        (
            lambda m: wl.Guidance.from_edit(m, "a cat", "a red cat").with_images(pictures()),
            "Target images do not go with the directional loss",
        ),
        (
            lambda m: wl.Guidance.from_edit(m, "a cat", "A  cat"),
            r"edit from 'A  cat' to 'a cat' changes nothing.*passed twice.*Say what",
        ),
        (
            lambda m: wl.Guidance.from_edit(m, PROMPTS, ["a cat", "a mushroom", "a bulldozer"]),
            r"3 source prompts do not go with 2 prompts.*one for each",
        ),
        (
            lambda m: wl.Guidance.from_edit(m, "a cat", "a mushroom", config=wl.GuidanceConfig()),
            r'with the cosine loss.*left the loss at its default.*Set loss="directional"',
        ),
        (lambda m: wl.Guidance.from_edit(m, "a cat", ""), "hold an empty text"),
    ],
)
def test_what_a_loss_cannot_work_with_is_refused(model, make, message):
    with pytest.raises(WordlightError, match=message):
        make(model)


def test_a_missing_source_or_one_too_many_is_refused(model, image):
    with pytest.raises(
        WordlightError, match=r"no source to measure.*source_images there, or guidance\(image"
    ):
        edit(model)(image, KEY)
    with pytest.raises(WordlightError, match=r"came with the loss 'cosine'.*looks at the image alone.*Drop"):
        wl.Guidance.from_prompts(model, "a cat")(image, KEY, source=image)
    with pytest.raises(WordlightError, match=r"shape \(2, 40, 28, 3\).*shape \(40, 28, 3\).*leading axes"):
        edit(model)(image, KEY, source=pictures(2))
