"""Preprocessing against PIL, JAX's own resampling, published values and differences."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import PIL.Image
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.preprocess import check_layout, preprocess
from wordlight.errors import WordlightError

CLIP = ImageSpec((224, 224))
SMALL = ImageSpec((16, 16))
PLAIN: dict[str, Any] = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}


def image(*shape, seed=0):
    return np.random.default_rng(seed).random((*shape, 3)).astype("f4")


# Values


@pytest.mark.parametrize(
    ("value", "channels"),
    [
        (0.5, (0.0690, 0.1614, 0.3328)),
        (0.0, (-1.7923, -1.7521, -1.4802)),
        (1.0, (1.9303, 2.0749, 2.1459)),
    ],
)
def test_constant_images_have_the_published_values(value, channels):
    pixels = preprocess(np.full((60, 90, 3), value, "f4"), CLIP)
    assert pixels.shape == (224, 224, 3)
    np.testing.assert_allclose(pixels, np.broadcast_to(channels, pixels.shape), atol=5e-5)


def test_a_landscape_image_is_resized_by_its_shorter_side_and_cropped_in_the_middle():
    assert CLIP.resized_size((480, 640)) == (224, 298)
    assert CLIP.crop_offset(298, 224) == 37


def test_a_landscape_image_is_neither_transposed_nor_squashed():
    ramp = np.broadcast_to(np.linspace(0, 1, 640)[None, :, None], (480, 640, 3)).astype("f4")
    pixels = preprocess(ramp, ImageSpec((224, 224), **PLAIN))
    np.testing.assert_allclose(pixels[0], pixels[-1], atol=1e-5)
    # Column x of the crop is centred at (37 + x + 1/2) of 298 resized columns, 640 / 298 as wide as before.
    expected = ((37 + np.arange(224) + 0.5) * 640 / 298 - 0.5) / 639
    np.testing.assert_allclose(pixels[100, :, 0], expected, atol=1e-5)


def test_a_step_overshoots_on_floats_and_is_clipped_and_rounded_as_pil_does():
    step = np.zeros((8, 8, 3), "f4")
    step[:, 4:] = 1
    spec = ImageSpec((4, 4), **PLAIN)
    row = preprocess(step, spec)[2, :, 0] * 255
    np.testing.assert_allclose(row, [-3.2008, 16.7375, 238.2625, 258.2008], atol=1e-4)
    rounded = preprocess(step, dataclasses.replace(spec, rounding="pil"))[2, :, 0] * 255
    np.testing.assert_allclose(rounded, [0, 17, 238, 255], atol=1e-4)


def test_an_already_normalised_image_can_be_resized():
    normalised = image(50, 70) * 4 - 2
    pixels = preprocess(normalised, ImageSpec((32, 32), **PLAIN))
    np.testing.assert_allclose(
        pixels, preprocess(image(50, 70), ImageSpec((32, 32), **PLAIN)) * 4 - 2, atol=1e-5
    )


def test_8_bit_rounding_rounds_and_does_not_cut():
    pixels = preprocess(np.full((8, 8, 3), 0.9999, "f4"), ImageSpec((8, 8), rounding="pil", **PLAIN))
    np.testing.assert_array_equal(pixels, 1)


def test_a_small_image_is_enlarged():
    assert preprocess(image(32, 32), CLIP).shape == (224, 224, 3)
    assert preprocess(image(1, 1), CLIP).shape == (224, 224, 3)


def test_value_ranges_and_layouts_agree():
    x = image(40, 30)
    expected = preprocess(x, SMALL)
    ranges: list[tuple[Any, dict[str, Any]]] = [
        (x * 255, {"value_range": "byte"}),
        (x * 2 - 1, {"value_range": "signed"}),
        (np.moveaxis(x, -1, 0), {"layout": "CHW"}),
    ]
    for other, options in ranges:
        np.testing.assert_allclose(preprocess(other, SMALL, **options), expected, atol=1e-5)


@pytest.mark.parametrize("value_range", ["unit", "byte", "signed"])
def test_padding_is_black_whatever_the_value_range(value_range):
    spec = ImageSpec((16, 16), resize="longest", fill=0.25, mode="open_clip")
    white = np.full((8, 4, 3), {"unit": 1.0, "byte": 255.0, "signed": 1.0}[value_range], "f4")
    pixels = preprocess(white, spec, value_range=value_range)
    np.testing.assert_allclose(pixels[:, :4], np.broadcast_to(_normal(0.25), (16, 4, 3)), atol=1e-5)
    np.testing.assert_allclose(pixels[:, 4:12], np.broadcast_to(_normal(1.0), (16, 8, 3)), atol=1e-5)


def _normal(value):
    return (value - np.array(CLIP.mean)) / np.array(CLIP.std)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_half_precision_images_are_computed_in_float32(dtype):
    x = jnp.asarray(image(20, 20), dtype)
    pixels = preprocess(x, SMALL)
    assert pixels.dtype == jnp.float32
    np.testing.assert_array_equal(pixels, preprocess(x.astype(jnp.float32), SMALL))


def test_integers_are_taken_as_bytes():
    x = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    np.testing.assert_allclose(
        preprocess(x, SMALL, value_range="byte"), preprocess(x.astype("f4") / 255, SMALL), atol=1e-5
    )


# Against other programs


def pil_reference(x, spec, kernel):
    height, width = spec.resized_size(x.shape[:2])
    resized = np.asarray(PIL.Image.fromarray(x).resize((width, height), kernel))
    top, left = (spec.crop_offset(a, b) for a, b in zip((height, width), spec.size, strict=True))
    return resized[top : top + spec.size[0], left : left + spec.size[1]]


with np.load(Path(__file__).parent / "golden" / "preprocess.npz") as file:
    GOLDEN = {name: file[name] for name in file.files}


@pytest.mark.parametrize("name", sorted({key.split("/")[0] for key in GOLDEN}))
def test_equal_to_torchvision_transformers_and_open_clip(name):
    x, pixels = GOLDEN[f"{name}/image"], GOLDEN[f"{name}/pixels"]
    stored = json.loads(str(GOLDEN[f"{name}/spec"]))
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    spec = ImageSpec(**fields)
    if x.dtype == np.uint8:  # within one 8-bit level
        difference = np.abs(preprocess(x, spec, value_range="byte") - pixels) * 255 * np.array(spec.std)
        assert difference.max() < 1.01
    else:
        np.testing.assert_allclose(preprocess(x, spec), pixels, atol=1e-4)


@pytest.mark.parametrize("size", [(48, 64), (100, 75), (9, 9), (33, 61)])
@pytest.mark.parametrize("kernel", ["bicubic", "bilinear", "lanczos", "nearest", "box"])
def test_within_one_level_of_pil_with_rounding(size, kernel):
    x = (image(*size) * 255).astype(np.uint8)
    spec = ImageSpec((24, 24), interpolation=kernel, rounding="pil", **PLAIN)
    pixels = np.asarray(preprocess(x, spec, value_range="byte")) * 255
    difference = np.abs(pixels - pil_reference(x, spec, getattr(PIL.Image.Resampling, kernel.upper())))
    assert difference.max() < 1.01
    assert (difference > 0.5).mean() < 0.05  # sums that end on a half


@pytest.mark.parametrize("kernel", ["bicubic", "bilinear", "lanczos"])
@pytest.mark.parametrize("antialias", [True, False])
def test_equal_to_jax_resampling_in_the_big_vision_mode(kernel, antialias):
    x = image(50, 37)
    spec = ImageSpec(
        (20, 45), resize="squash", interpolation=kernel, antialias=antialias, mode="big_vision", **PLAIN
    )
    method = {"bicubic": "cubic", "bilinear": "linear", "lanczos": "lanczos3"}[kernel]
    expected = jax.image.resize(x, (20, 45, 3), method, antialias=antialias)
    np.testing.assert_allclose(preprocess(x, spec), expected, atol=2e-5)


@pytest.mark.parametrize(
    ("mode", "spare", "offset"),
    [
        ("hf-pil", 5, 2),
        ("hf-torchvision", 5, 2),
        ("open_clip", 5, 2),
        ("openai", 7, 4),
        ("hf-pil", 7, 3),
        ("big_vision", 7, 3),
        ("hf-pil", -5, -3),
        ("hf-torchvision", -5, -2),
        ("open_clip", -5, -2),
    ],
)
def test_each_mode_places_its_crop(mode, spare, offset):
    assert ImageSpec((20, 20), mode=mode).crop_offset(20 + spare, 20) == offset


def test_each_mode_rounds_its_sizes():
    assert ImageSpec((224, 224), mode="big_vision").resized_size((480, 641)) == (224, 299)
    assert ImageSpec((224, 224), mode="openai").resized_size((480, 641)) == (224, 299)
    assert ImageSpec((224, 224), mode="big_vision").resized_size((480, 639)) == (224, 298)
    assert ImageSpec((10, 20), mode="open_clip").resized_size((33, 50)) == (13, 20)
    assert ImageSpec((10, 20), "longest", mode="open_clip").resized_size((33, 50)) == (10, 15)
    assert ImageSpec((10, 20), "longest", mode="hf-pil").resized_size((33, 50)) == (10, 15)


# Transformations


def difference_quotient(loss, x, direction, eps):
    return (loss(x + eps * direction) - loss(x - eps * direction)) / (2 * eps)


def test_gradient_of_a_traced_image_equals_differences():
    x, weight = jnp.asarray(image(100, 150)), jnp.asarray(image(224, 224, seed=1))

    def loss(x):
        return jnp.mean(weight * preprocess(x, CLIP) ** 2)

    gradient = jax.jit(jax.grad(loss))(x)
    assert bool(jnp.isfinite(gradient).all())
    assert float(jnp.abs(gradient).max()) > 0
    for seed in (2, 3):
        direction = jnp.asarray(image(100, 150, seed=seed)) - 0.5
        numeric = difference_quotient(loss, x, direction, 0.05)
        np.testing.assert_allclose(jnp.vdot(gradient, direction), numeric, rtol=1e-2)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_gradient_at_a_blank_image_is_finite(value):
    gradient = jax.grad(lambda x: jnp.sum(preprocess(x, SMALL) ** 3))(jnp.full((20, 30, 3), value))
    assert bool(jnp.isfinite(gradient).all())


def test_rounding_lets_the_gradient_straight_through():
    spec = dataclasses.replace(SMALL, rounding="pil")
    x, weight = jnp.asarray(image(40, 30)), jnp.asarray(image(16, 16, seed=1))
    gradients = [jax.grad(lambda x, s=s: jnp.sum(weight * preprocess(x, s)))(x) for s in (SMALL, spec)]
    np.testing.assert_allclose(gradients[0], gradients[1], atol=1e-5)


def test_transformations_agree_with_the_plain_call():
    x = jnp.asarray(np.stack([image(20, 30, seed=s) for s in range(4)]))
    expected = np.stack([preprocess(one, SMALL) for one in x])
    mesh = Mesh(np.array(jax.devices()[:2]), ("views",))
    prepare = lambda x: preprocess(x, SMALL)  # noqa: E731
    sharded = jax.shard_map(prepare, mesh=mesh, in_specs=P("views"), out_specs=P("views"))
    results = {
        "leading axes": prepare(x.reshape(2, 2, 20, 30, 3)).reshape(4, 16, 16, 3),
        "jit": jax.jit(prepare)(x),
        "vmap": jax.vmap(prepare)(x),
        "pmap": jax.pmap(prepare)(x.reshape(2, 2, 20, 30, 3)).reshape(4, 16, 16, 3),
        "shard_map": jax.jit(sharded)(x),
        "scan": jax.lax.scan(lambda c, one: (c, prepare(one)), 0, x)[1],
    }
    for name, result in results.items():
        np.testing.assert_allclose(result, expected, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("lead", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("rounding", ["none", "pil"])
def test_an_empty_batch_gives_an_empty_one(lead, layout, rounding):
    x = np.zeros((*lead, 20, 30, 3) if layout == "HWC" else (*lead, 3, 20, 30), "f4")
    prepare = lambda x: preprocess(x, dataclasses.replace(SMALL, rounding=rounding), layout=layout)  # noqa: E731
    assert prepare(x).shape == jax.jit(prepare)(x).shape == (*lead, 16, 16, 3)
    assert jax.grad(lambda x: jnp.sum(prepare(x)))(x).shape == x.shape


def test_no_callback_and_no_second_compilation():
    prepare: Any = jax.jit(preprocess, static_argnames="spec")
    assert "callback" not in str(jax.make_jaxpr(lambda x: preprocess(x, SMALL))(jnp.zeros((20, 30, 3))))
    prepare(image(20, 30), spec=SMALL)
    prepare(image(20, 30, seed=1), spec=ImageSpec((16, 16)))
    assert prepare._cache_size() == 1


def test_only_the_rows_that_the_crop_needs_are_read():
    tall = image(400, 20).copy()
    tall[:150], tall[-150:] = np.nan, np.nan  # a 20 x 20 crop of the middle depends on none of these
    assert np.isfinite(preprocess(tall, SMALL)).all()


# Refusals


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (np.zeros((8, 8), "f4"), {}, "has 2 axes.*Reshape"),
        (np.zeros((8, 8, 1), "f4"), {}, "1 channels.*grey.*repeat"),
        (np.zeros((8, 8, 4), "f4"), {}, "4 channels.*opacity.*compose"),
        (np.zeros((3, 8, 8), "f4"), {}, "layout='CHW'"),
        (np.zeros((8, 8, 3), "f4"), {"layout": "CHW"}, "layout='HWC'"),
        (np.zeros((8, 8, 5), "f4"), {}, "5 channels"),
        (np.zeros((0, 8, 3), "f4"), {}, "no pixels"),
        (np.zeros((0, 8, 0, 3), "f4"), {}, "no pixels"),
        (np.zeros((8, 8, 3), "u1"), {}, "dtype uint8.*jax.grad.*Pass floats.*byte"),
        (np.zeros((8, 8, 3), "i4"), {"value_range": "signed"}, "dtype int32"),
        (np.zeros((8, 8, 3), bool), {}, "dtype bool"),
        (np.zeros((8, 8, 3), "c8"), {}, "dtype complex64"),
    ],
)
def test_what_is_not_an_image_is_refused(images, options, message):
    with pytest.raises(WordlightError, match=message):
        preprocess(images, SMALL, **options)


def test_integers_under_grad_are_refused_with_advice():
    x = jnp.ones((8, 8, 3))
    with pytest.raises(WordlightError, match=r"no gradient.*Pass floats"):
        jax.grad(lambda x: jnp.sum(preprocess((x * 255).astype(jnp.uint8), SMALL)))(x)
    # JAX itself refuses an integer argument before any of our code runs.
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        jax.grad(lambda x: jnp.sum(preprocess(x, SMALL)))(x.astype(jnp.uint8))


def test_big_vision_never_pads():
    with pytest.raises(WordlightError, match="never pads"):
        preprocess(image(8, 8), ImageSpec((16, 16), resize="none", mode="big_vision"))


def test_a_layout_is_one_of_two():
    check_layout("HWC")
    check_layout("CHW")
    with pytest.raises(WordlightError, match=r"layout 'NCHW' is none of 'HWC', 'CHW'.*said by.*Give one"):
        check_layout("NCHW")
