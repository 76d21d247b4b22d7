"""The names that transformers dropped: calls, outputs, images of every kind, traced and not."""

import dataclasses
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import PIL.Image
import pytest

from wordlight.clip.config import ClipConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.model import ClipModel, init_params
from wordlight.clip.preprocess import preprocess
from wordlight.clip.save import save_folder
from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.tokenizer_files import write_word_level_tokenizer
from wordlight.errors import WordlightError
from wordlight.hf import AutoProcessor, CLIPImageProcessor, CLIPProcessor, CLIPTokenizer, FlaxCLIPModel

SIZE, CONTEXT = 16, 8
BLOCKS = TransformerConfig(width=16, layers=1, heads=2, mlp_width=32)
CONFIG = ClipConfig(
    embed_dim=12,
    vision=VitConfig((SIZE, SIZE), 8, BLOCKS),
    text=TextConfig(vocab_size=10, context_length=CONTEXT, transformer=BLOCKS, end_id=9),
)
PROMPTS = ["a red bulldozer", "a yellow cat of red"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    write_word_level_tokenizer(folder, ["a", "bulldozer", "cat", "of", "red", "yellow"], CONTEXT)
    clip = ClipModel(init_params(jax.random.key(0), CONFIG), CONFIG, ImageSpec((SIZE, SIZE)))
    save_folder(folder, clip)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return FlaxCLIPModel.from_pretrained(folder)


@pytest.fixture(scope="module")
def processor(folder):
    return AutoProcessor.from_pretrained(str(folder))


def image(*shape, seed=0):
    return np.random.default_rng(seed).random((*shape, 3)).astype("f4")


# The model


def test_the_call_gives_cosines_times_the_scale(model, processor):
    inputs = processor(text=PROMPTS, images=image(20, 30), return_tensors="jax", padding=True)
    outputs = model(**inputs)
    assert outputs.logits_per_image.shape == (1, 2)
    np.testing.assert_array_equal(outputs.logits_per_text, outputs.logits_per_image.T)
    np.testing.assert_allclose(np.linalg.norm(outputs.text_embeds, axis=-1), 1, atol=1e-5)
    scale = np.exp(model.params["logit_scale"])
    np.testing.assert_allclose(
        outputs.logits_per_image, scale * outputs.image_embeds @ outputs.text_embeds.T, rtol=1e-4, atol=1e-5
    )


def test_the_output_is_read_by_attribute_key_position_and_as_a_pytree(model, processor):
    inputs = processor(text=PROMPTS, images=image(20, 30), return_tensors="jax", padding=True)
    outputs = model(**inputs)
    names = ["logits_per_image", "logits_per_text", "text_embeds", "image_embeds"]
    assert list(outputs) == list(outputs.keys()) == names
    assert outputs["text_embeds"] is outputs.text_embeds is outputs[2] is outputs.to_tuple()[2]
    assert dict(**dict(outputs.items()))["image_embeds"] is outputs[-1]
    assert len(outputs) == len(outputs[:]) == len(jax.tree.leaves(outputs)) == 4
    assert isinstance(model(**inputs, return_dict=False), tuple)
    jitted = jax.jit(lambda inputs: model(**inputs))(inputs)
    np.testing.assert_allclose(jitted.logits_per_image, outputs.logits_per_image, rtol=1e-4, atol=1e-5)
    with pytest.raises(AttributeError, match=r"vision_model_output.*Use text_embeds or image_embeds"):
        _ = outputs.vision_model_output


def test_features_are_projections_before_normalisation(model, processor):
    inputs = processor(text=PROMPTS, images=image(20, 30), return_tensors="jax", padding=True)
    text = model.get_text_features(inputs.input_ids, inputs.attention_mask)
    features = model.get_image_features(inputs["pixel_values"])
    outputs = model(**inputs)
    for raw, unit in [(text, outputs.text_embeds), (features, outputs.image_embeds)]:
        assert not np.allclose(np.linalg.norm(raw, axis=-1), 1, atol=1e-3)
        np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=-1, keepdims=True), unit, atol=1e-5)


def test_padding_changes_no_embedding(model, processor):
    short = processor(text=PROMPTS[0], return_tensors="jax", padding=True)
    long = processor(text=PROMPTS[0], return_tensors="jax", padding="max_length")
    assert (short.input_ids.shape, long.input_ids.shape) == ((1, 5), (1, CONTEXT))
    features = [model.get_text_features(**batch) for batch in (short, long)]
    np.testing.assert_allclose(features[0], features[1], atol=1e-5)
    np.testing.assert_allclose(model.get_text_features(long.input_ids), features[0], atol=1e-5)


def test_weights_may_be_replaced_for_one_call_or_for_good(folder, processor):
    model = FlaxCLIPModel.from_pretrained(folder)
    inputs = processor(text=PROMPTS, images=image(20, 30), return_tensors="jax", padding=True)
    before = model(**inputs).logits_per_image
    changed = model.params | {"logit_scale": model.params["logit_scale"] + np.log(2).astype("f4")}
    np.testing.assert_allclose(
        model(**inputs, params=changed).logits_per_image, 2 * before, rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(model(**inputs).logits_per_image, before)
    model.params = changed
    np.testing.assert_allclose(model(**inputs).logits_per_image, 2 * before, rtol=1e-4, atol=1e-5)
    with pytest.raises(WordlightError, match="params of structure"):
        model(**inputs, params={"logit_scale": jnp.zeros(())})


def test_weights_given_as_an_argument_are_no_constants(model, processor):
    def loss(image, params):
        inputs = processor(text=PROMPTS, images=[image], return_tensors="jax", padding=True)
        return jnp.mean(model(**inputs, params=params).logits_per_image)

    closed = jax.make_jaxpr(jax.grad(loss))(jnp.asarray(image(20, 30)), model.params)
    assert "callback" not in str(closed)
    weights = {leaf.shape for leaf in jax.tree.leaves(model.params) if leaf.size > 64}
    assert not weights & {np.shape(const) for const in closed.consts}


@pytest.mark.parametrize(
    "option",
    [
        {"train": True},
        {"dropout_rng": 0},
        {"position_ids": np.arange(5)[None]},
        {"output_attentions": True},
        {"output_hidden_states": True},
    ],
)
def test_options_that_are_not_done_are_refused(model, processor, option):
    inputs = processor(text=PROMPTS[0], images=image(20, 30), return_tensors="jax")
    with pytest.raises(WordlightError, match=f"{next(iter(option))}=.*is not supported.*Leave .* out"):
        model(**inputs, **option)
    model(**inputs, train=False, output_attentions=False, output_hidden_states=False, return_dict=True)


def test_loading_takes_hub_options_and_refuses_others(folder):
    loaded = FlaxCLIPModel.from_pretrained(folder, revision="main", local_files_only=True, from_pt=True)
    assert loaded.clip.config == CONFIG
    refused: list[dict[str, Any]] = [{"force_download": True}, {"from_pt": False}, {"_do_init": False}]
    for options in refused:
        (name,) = options
        with pytest.raises(WordlightError, match=f"{name}=.*is not supported: .*Leave {name} out"):
            FlaxCLIPModel.from_pretrained(folder, **options)
    unknown: Any = {"device_map": "auto"}
    for loader in (FlaxCLIPModel, AutoProcessor, CLIPProcessor, CLIPImageProcessor, CLIPTokenizer):
        with pytest.raises(TypeError, match="device_map"):
            loader.from_pretrained(folder, **unknown)
    with pytest.raises(WordlightError, match="no model"):
        AutoProcessor.from_pretrained("./nowhere")


def test_pixel_values_that_were_not_preprocessed_are_refused(model):
    with pytest.raises(WordlightError, match=r"not \[images, 3, height, width\]"):
        model.get_image_features(image(20, 30))
    with pytest.raises(WordlightError, match="preprocessed"):
        model.get_image_features(np.zeros((1, 3, 20, 30), "f4"))


# Images


SPEC = ImageSpec((SIZE, SIZE), resize_to=(SIZE, SIZE))


def expected(*images):
    return np.stack([np.moveaxis(np.asarray(preprocess(one, SPEC)), -1, 0) for one in images])


def test_images_of_rank_3_and_4_and_lists_of_them(processor):
    one, two = image(20, 30), image(20, 30, seed=1)
    for images, count in [
        (one, 1),
        ([one], 1),
        (np.stack([one, two]), 2),
        ([np.stack([one, two])], 2),
        ([one, two], 2),
    ]:
        for kind in (np.asarray, jnp.asarray):
            given = [kind(i) for i in images] if isinstance(images, list) else kind(images)
            pixels = processor(images=given, return_tensors="jax").pixel_values
            np.testing.assert_allclose(pixels, expected(one, two)[:count], atol=1e-5)


def test_traced_images_in_every_arrangement(processor):
    one, two = jnp.asarray(image(20, 30)), jnp.asarray(image(20, 30, seed=1))
    arrangements = {
        "list": lambda a, b: [a, b],
        "batch": lambda a, b: jnp.stack([a, b]),
        "list of a batch": lambda a, b: [jnp.stack([a, b])],
        "channels first": lambda a, b: [jnp.moveaxis(a, -1, 0), jnp.moveaxis(b, -1, 0)],
    }
    for name, arrange in arrangements.items():
        call = jax.jit(lambda a, b, f=arrange: processor(images=f(a, b), return_tensors="jax").pixel_values)
        np.testing.assert_allclose(call(one, two), expected(one, two), atol=1e-5, err_msg=name)


def test_images_of_unlike_sizes_are_preprocessed_alone_then_stacked(processor):
    images = [image(20, 30), image(33, 17, seed=1), image(16, 16, seed=2)]
    pixels = processor(images=images, return_tensors="np").pixel_values
    np.testing.assert_allclose(pixels, expected(*images), atol=1e-5)


def test_concrete_integers_are_rescaled_and_rounded_as_pil_does(processor):
    x = (image(20, 30) * 255).astype(np.uint8)
    rounded = dataclasses.replace(SPEC, rounding="pil")
    reference = np.moveaxis(np.asarray(preprocess(x, rounded, value_range="byte")), -1, 0)[None]
    for images in (
        x,
        jnp.asarray(x),
        PIL.Image.fromarray(x),
        [PIL.Image.fromarray(x)],
        np.moveaxis(x, -1, 0),
    ):
        pixels = processor(images=images, return_tensors="np").pixel_values
        np.testing.assert_allclose(pixels, reference, atol=1e-5)


def test_pil_images_of_other_modes_become_rgb(processor):
    grey = PIL.Image.fromarray((image(20, 30)[..., 0] * 255).astype(np.uint8))
    pixels = processor(images=[grey, grey.convert("RGBA")], return_tensors="np").pixel_values
    np.testing.assert_array_equal(pixels[0], pixels[1])


def test_do_rescale_says_what_floats_hold(processor):
    x = image(20, 30)
    for images, options in [(x * 255, {"do_rescale": True}), (x, {"do_rescale": False}), (x, {})]:
        pixels = processor(images=images, return_tensors="np", **options).pixel_values
        np.testing.assert_allclose(pixels, expected(x), atol=1e-5)
    raw = processor(
        images=np.full((20, 30, 3), 2, np.uint8), return_tensors="np", do_rescale=False
    ).pixel_values
    np.testing.assert_allclose(raw, expected(np.full((20, 30, 3), 2, "f4")), atol=1e-5)


def test_steps_can_be_left_out(processor):
    x = image(SIZE, SIZE + 4)
    plain = processor(images=x, return_tensors="np", do_normalize=False, do_resize=False).pixel_values
    np.testing.assert_allclose(plain[0], np.moveaxis(x[:, 2:-2], -1, 0), atol=1e-6)
    whole = processor(images=x, return_tensors="np", do_center_crop=False).pixel_values
    assert whole.shape == (1, 3, SIZE, SIZE + 4)
    with pytest.raises(WordlightError, match=r"sizes.*cannot be one array"):
        processor(images=[x, image(40, 20)], return_tensors="np", do_center_crop=False)
    assert len(processor(images=[x, image(40, 20)], do_center_crop=False).pixel_values) == 2


def test_the_channel_axis_is_found_or_said(processor):
    ambiguous = image(3, 20)
    with pytest.warns(UserWarning, match="first or last; first is taken"):
        pixels = processor(images=ambiguous, return_tensors="np").pixel_values
    np.testing.assert_allclose(pixels, expected(np.moveaxis(ambiguous, 0, -1)), atol=1e-5)
    pixels = processor(images=ambiguous, return_tensors="np", input_data_format="channels_last").pixel_values
    np.testing.assert_allclose(pixels, expected(ambiguous), atol=1e-5)


def test_without_return_tensors_lists_come_back(processor):
    batch = processor(text=PROMPTS[0], images=[image(20, 30)])
    assert batch["input_ids"] == [8, 2, 6, 3, 9]
    assert isinstance(batch.pixel_values, list)
    assert isinstance(batch.pixel_values[0], np.ndarray)
    assert processor(text=PROMPTS).attention_mask == [[1] * 5, [1] * 7]


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        ([], {}, "list is empty"),
        ("photo.png", {}, "neither text nor images|is not an image"),
        ([["photo.png"]], {}, "is not an image"),
        (np.zeros((20, 30), "f4"), {}, "rank 2"),
        (np.zeros((20, 30, 1), "f4"), {}, "grey"),
        (np.zeros((20, 30, 4), "f4"), {}, "opacity"),
        (np.zeros((20, 30, 3), "f4"), {"return_tensors": "pt"}, "PyTorch"),
        (np.zeros((20, 30, 3), "f4"), {"input_data_format": "HWC"}, "channels_last"),
    ],
)
def test_what_is_not_an_image_is_refused(processor, images, options, message):
    with pytest.raises(WordlightError, match=message):
        processor.image_processor(images, **options)


def test_traced_integers_are_refused_unless_asked_for(processor):
    def total(x, **options):
        return jnp.sum(processor(images=x, return_tensors="jax", **options).pixel_values)

    x = jnp.ones((20, 30, 3), jnp.uint8)
    with pytest.raises(WordlightError, match=r"loses the gradient.*Pass floats in \[0, 1\]"):
        jax.jit(jax.grad(lambda x: total((x * 255).astype(jnp.uint8))))(jnp.ones((20, 30, 3)))
    with pytest.raises(WordlightError, match="dtype uint8"):
        jax.jit(total)(x)
    assert np.isfinite(jax.jit(lambda x: total(x, do_rescale=True))(x))
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        jax.grad(total)(x)


def test_traced_images_cannot_become_numpy(processor):
    with pytest.raises(WordlightError, match="return_tensors='jax'"):
        jax.jit(lambda x: processor(images=x, return_tensors="np").pixel_values)(jnp.zeros((20, 30, 3)))


# Text


def test_text_alone_images_alone_and_either_order(processor):
    x = image(20, 30)
    assert set(processor(text=PROMPTS)) == {"input_ids", "attention_mask"}
    assert set(processor(images=x)) == {"pixel_values"}
    for batch in (processor(PROMPTS, x), processor(x, PROMPTS)):
        assert set(batch) == {"input_ids", "attention_mask", "pixel_values"}
    assert set(processor(x)) == {"pixel_values"}
    with pytest.raises(WordlightError, match="neither text nor images"):
        processor()


def test_truncation_and_lengths(processor):
    long = "a red cat of a yellow bulldozer of red"
    with pytest.raises(WordlightError, match="limit is 8"):
        processor(text=long)
    with pytest.warns(UserWarning, match="limit of 6"):
        ids = processor(text=long, truncation=True, max_length=6, return_tensors="np").input_ids
    assert ids.shape == (1, 6)
    assert ids[0, -1] == 9
    with pytest.raises(WordlightError, match="max_length=99"):
        processor(text=long, max_length=99)
    with pytest.raises(WordlightError, match=r"\[5, 7\] tokens.*padding=True"):
        processor(text=PROMPTS, return_tensors="jax")
    with pytest.raises(WordlightError, match="Unknown word 'dragon'"):
        processor(text="a dragon")


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_padding_is_refused(processor):
    with pytest.raises(WordlightError, match="padding='left'"):
        processor(text=PROMPTS, padding="left")


def test_a_checkpoint_without_tokenizer_files_takes_images_only(folder, tmp_path):
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    processor = CLIPProcessor.from_pretrained(tmp_path)
    assert set(processor(images=image(20, 30))) == {"pixel_values"}
    with pytest.raises(WordlightError, match="no tokenizer files"):
        processor(text="a cat")
    with pytest.raises(WordlightError, match="no tokenizer files"):
        CLIPTokenizer.from_pretrained(tmp_path)
    assert isinstance(CLIPTokenizer.from_pretrained(folder).tokenizer, Tokenizer)
    assert CLIPImageProcessor.from_pretrained(folder).image_spec == SPEC


def test_a_processor_of_an_openclip_folder(folder, tmp_path):
    transformer = {"width": 64, "layers": 1}
    config = {
        "model_cfg": {
            "embed_dim": 12,
            "vision_cfg": transformer | {"image_size": SIZE, "patch_size": 8},
            "text_cfg": transformer | {"context_length": CONTEXT, "vocab_size": 10, "heads": 2},
        },
        "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
    }
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    white = np.ones((20, 30, 3), "f4")
    batch = CLIPProcessor.from_pretrained(tmp_path)(PROMPTS[0], white, return_tensors="np")
    np.testing.assert_allclose(batch.pixel_values, np.ones((1, 3, SIZE, SIZE)), atol=1e-6)
    assert batch.input_ids.tolist() == [[8, 2, 6, 3, 9]]


def test_the_batch_says_what_it_lacks(processor):
    with pytest.raises(AttributeError, match=r"no 'pixel_values'.*input_ids, attention_mask"):
        _ = processor(text=PROMPTS).pixel_values


# Gradients


def test_gradient_at_the_image_equals_differences(model, processor):
    def loss(rgb):
        inputs = processor(text=[PROMPTS[0]], images=[rgb], return_tensors="jax", padding=True)
        return jnp.mean(model(**inputs).logits_per_image)

    x = jnp.asarray(image(24, 30)) * 0.6 + 0.2
    gradient = jax.jit(jax.grad(loss))(x)
    direction = gradient / jnp.linalg.norm(gradient)
    numeric = (loss(x + 0.05 * direction) - loss(x - 0.05 * direction)) / 0.1
    np.testing.assert_allclose(jnp.vdot(gradient, direction), numeric, rtol=0.05)
