"""Options of the calls that transformers dropped: honoured, or refused by name."""

import dataclasses
import json
import shutil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import PIL.Image
import pytest

from tiny_clip import RESNET, SIZE, VIT, pictures, tiny_clip, tiny_tokenizer
from wordlight.clip.image_size import with_image_size
from wordlight.clip.load import load_folder
from wordlight.clip.save import save_folder
from wordlight.clip.tokenizer_files import clip_bpe
from wordlight.errors import WordlightError
from wordlight.hf import AutoProcessor, CLIPImageProcessor, CLIPTokenizer, FlaxCLIPModel

PROMPTS = ["a red cat", "a cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    tiny_tokenizer(folder)
    save_folder(folder, tiny_clip())
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return FlaxCLIPModel.from_pretrained(folder)


@pytest.fixture(scope="module")
def processor(folder):
    return AutoProcessor.from_pretrained(folder)


IDS = {"long": [10, 2, 8, 4, 11], "short": [10, 2, 4, 11]}


def processor_of(source, folder, **files):
    """A processor of a folder with the tokenizer of `source` and other settings."""
    shutil.copy(source / "tokenizer.json", folder)
    settings = json.loads((source / "tokenizer_config.json").read_text())
    files["tokenizer_config"] = settings | files.get("tokenizer_config", {})
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return AutoProcessor.from_pretrained(folder)


# Loading


def test_the_type_is_the_second_argument(folder, model):
    pixels = np.asarray(AutoProcessor.from_pretrained(folder)(images=pictures(2)).pixel_values)
    expected = model.get_image_features(pixels)
    for dtype in (jnp.bfloat16, jnp.float16, "bfloat16"):
        other = FlaxCLIPModel.from_pretrained(folder, dtype)
        assert other.dtype == jnp.dtype(dtype) != model.dtype == jnp.float32
        features = other.get_image_features(pixels)
        assert features.dtype == jnp.float32
        np.testing.assert_allclose(features, expected, atol=0.05 * float(jnp.abs(expected).max()))
    with pytest.raises(WordlightError, match="Weights of type float64 were asked for"):
        FlaxCLIPModel.from_pretrained(folder, dtype=np.float64)


def test_a_subfolder_is_looked_into(folder, model):
    name = folder.name
    below = FlaxCLIPModel.from_pretrained(folder.parent, subfolder=name, force_download=False, _do_init=True)
    assert below.clip.config == model.clip.config
    for loader in (AutoProcessor, CLIPImageProcessor, CLIPTokenizer):
        loader.from_pretrained(folder.parent, subfolder=name, force_download=False, use_fast=True)
    for loader in (FlaxCLIPModel, AutoProcessor):
        with pytest.raises(
            WordlightError, match=r"no subfolder 'clip9', only \[.*\]. It is misspelt.*Give one"
        ):
            loader.from_pretrained(folder.parent, subfolder="clip9")
        with pytest.raises(WordlightError, match=r"force_download=True is not supported.*hf download"):
            loader.from_pretrained(folder, force_download=True)


def test_use_fast_chooses_whose_rules_place_the_padding(folder):
    modes = {None: "hf-pil", True: "hf-torchvision", False: "hf-pil"}
    for use_fast, mode in modes.items():
        assert (
            AutoProcessor.from_pretrained(folder, use_fast=use_fast).image_processor.image_spec.mode == mode
        )


# The model


def test_the_configuration_has_the_names_it_had(model):
    config = model.config
    assert config.projection_dim == VIT.embed_dim
    vision, text = config.vision_config, config.text_config
    assert (vision.hidden_size, vision.intermediate_size, vision.num_hidden_layers) == (32, 64, 2)
    assert (vision.image_size, vision.patch_size, vision.num_channels) == (SIZE, 16, 3)
    assert (vision.hidden_act, vision.layer_norm_eps, vision.projection_dim) == ("quick_gelu", 1e-5, 24)
    assert (text.hidden_size, text.num_attention_heads, text.vocab_size) == (16, 2, 12)
    assert text.max_position_embeddings == 8
    wide = FlaxCLIPModel(with_image_size(model.clip, (32, 48), antialias=False))
    assert wide.config.vision_config.image_size == (32, 48)


def test_what_transformers_has_no_names_for_is_said(model):
    with pytest.raises(WordlightError, match=r"no vision_config: .*ResNet.*Read model.clip.config"):
        _ = FlaxCLIPModel(tiny_clip(RESNET)).config.vision_config
    with pytest.raises(WordlightError, match=r"no text_config: .*dropped.*Read model.clip.config"):
        _ = FlaxCLIPModel(model.clip.without_text()).config.text_config


def test_a_saved_model_is_read_back(folder, model, tmp_path):
    model.save_pretrained(tmp_path / "same")
    changed = model.params | {"logit_scale": jnp.float32(3)}
    model.save_pretrained(str(tmp_path / "changed"), params=changed)
    assert float(load_folder(tmp_path / "changed").params["logit_scale"]) == 3
    jax.tree.map(np.testing.assert_array_equal, load_folder(tmp_path / "same").params, model.params)
    FlaxCLIPModel.from_pretrained(folder, jnp.bfloat16).save_pretrained(tmp_path / "half")
    assert FlaxCLIPModel.from_pretrained(tmp_path / "half", jnp.bfloat16).dtype == jnp.bfloat16
    with pytest.raises(WordlightError, match=r"push_to_hub=True is not supported.*hf upload"):
        model.save_pretrained(tmp_path, push_to_hub=True)


# Text


def test_padding_goes_to_the_side_that_is_asked_for(processor):
    call: dict[str, Any] = {"padding": True, "return_tensors": "np"}
    right, left = (processor(text=PROMPTS, padding_side=side, **call) for side in ("right", "left"))
    assert right.input_ids.tolist() == [IDS["long"], [*IDS["short"], 0]]
    assert right.attention_mask.tolist() == [[1] * 5, [1, 1, 1, 1, 0]]
    assert left.input_ids.tolist() == [IDS["long"], [0, *IDS["short"]]]
    assert left.attention_mask.tolist() == [[1] * 5, [0, 1, 1, 1, 1]]
    assert processor(text=PROMPTS, **call).input_ids.tolist() == right.input_ids.tolist()


def test_the_side_of_the_padding_is_the_files(folder, tmp_path):
    shutil.copy(folder / "config.json", tmp_path)
    processor = processor_of(folder, tmp_path, tokenizer_config={"padding_side": "left"})
    assert processor(text=PROMPTS, padding=True).input_ids[1] == [0, *IDS["short"]]
    assert processor(text=PROMPTS, padding=True, padding_side="right").input_ids[1] == [*IDS["short"], 0]


def test_padded_rows_are_multiples(processor):
    rows = processor(text=PROMPTS, padding=True, pad_to_multiple_of=4).input_ids
    assert rows == [[*IDS["long"], 0, 0, 0], [*IDS["short"], 0, 0, 0, 0]]
    rows = processor(text=PROMPTS[1], padding="max_length", max_length=5, pad_to_multiple_of=3).input_ids
    assert rows == [*IDS["short"], 0, 0]
    assert processor(text=PROMPTS[1], pad_to_multiple_of=3).input_ids == IDS["short"]
    with pytest.raises(WordlightError, match=r"pad_to_multiple_of=0 is not a number above 0.*Leave it out"):
        processor(text=PROMPTS, padding=True, pad_to_multiple_of=0)


def test_the_mask_can_be_left_out(processor):
    assert list(processor(text=PROMPTS, return_attention_mask=False)) == ["input_ids"]
    assert set(processor(text=PROMPTS, return_attention_mask=True)) == {"input_ids", "attention_mask"}


def test_a_mask_comes_along_where_the_files_want_one(folder, tmp_path):
    vision, text = {"image_size": SIZE, "patch_size": 16}, {"vocab_size": 12, "max_position_embeddings": 8}
    config = {"model_type": "siglip", "vision_config": vision, "text_config": text}
    ids_only = {"model_input_names": ["input_ids"]}
    processor = processor_of(folder, tmp_path, config=config, tokenizer_config=ids_only)
    assert set(processor(text=PROMPTS, images=pictures())) == {"input_ids", "pixel_values"}
    assert "attention_mask" in processor(text=PROMPTS, return_attention_mask=True)
    assert "attention_mask" in processor_of(folder, tmp_path, config=config)(text=PROMPTS)
    unnamed = {"model_input_names": None}
    assert "attention_mask" in processor_of(folder, tmp_path, tokenizer_config=unnamed)(text=PROMPTS)


@pytest.mark.parametrize(
    ("text", "masked"),
    [({}, True), ({"no_causal_mask": True}, False), ({"pool_type": "last"}, False)],
)
def test_no_mask_hides_padding_that_open_clip_shows(folder, tmp_path, text, masked):
    tower = {"width": 64, "layers": 1}
    config = {
        "embed_dim": 12,
        "vision_cfg": tower | {"image_size": SIZE, "patch_size": 16},
        "text_cfg": tower | {"context_length": 8, "vocab_size": 12, "heads": 2} | text,
    }
    processor = processor_of(folder, tmp_path, open_clip_config={"model_cfg": config, "preprocess_cfg": {}})
    assert ("attention_mask" in processor(text=PROMPTS)) == masked


def test_options_of_one_side_win_over_those_of_the_call(processor):
    batch = processor(
        text=PROMPTS,
        images=pictures(),
        padding=True,
        return_tensors="np",
        text_kwargs={"padding": "max_length", "max_length": 6},
        images_kwargs={"do_normalize": False},
    )
    assert batch.input_ids.shape == (2, 6)
    plain = processor(images=pictures(), do_normalize=False, return_tensors="np").pixel_values
    np.testing.assert_array_equal(batch.pixel_values, plain)
    for name in ("text_kwargs", "images_kwargs"):
        with pytest.raises(TypeError, match="do_magic"):
            processor(text=PROMPTS, images=pictures(), **{name: {"do_magic": True}})


def test_text_without_its_frame_is_refused(processor):
    with pytest.raises(WordlightError, match=r"add_special_tokens=False is not supported.*Leave add_special"):
        processor(text=PROMPTS, add_special_tokens=False)


@pytest.mark.parametrize("truncation", [True, "longest_first", "only_first"])
def test_truncation_has_three_names(processor, truncation):
    with pytest.warns(UserWarning, match="limit of 3"):
        assert processor(text=PROMPTS[0], truncation=truncation, max_length=3).input_ids == [10, 2, 11]


@pytest.mark.parametrize("truncation", [None, False, "do_not_truncate"])
def test_without_truncation_long_prompts_are_refused(processor, truncation):
    with pytest.raises(WordlightError, match="limit is 3"):
        processor(text=PROMPTS[0], truncation=truncation, max_length=3)


@pytest.mark.usefixtures("unchecked")
def test_misspelt_choices_are_refused(processor):
    with pytest.raises(WordlightError, match=r"truncation='yes' is unknown. It is probably.*Give True"):
        processor(text=PROMPTS, truncation="yes")
    with pytest.raises(WordlightError, match=r"padding_side='top' is neither.*It is probably.*Leave it out"):
        processor(text=PROMPTS, padding_side="top")


def test_ids_become_text_again(processor):
    ids = processor(text=PROMPTS, return_tensors="jax", padding=True).input_ids
    assert processor.batch_decode(ids) == ["<start> a red cat <end>", "<start> a cat <end> <pad>"]
    assert processor.batch_decode(ids, skip_special_tokens=True) == PROMPTS
    assert processor.batch_decode([[2, 8], [4]]) == ["a red", "cat"]
    assert processor.decode(ids[1], skip_special_tokens=True) == "a cat"
    assert processor.tokenizer.decode(8) == "red"
    tokenizer = processor.tokenizer
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.model_max_length) == (0, 11, 8)


def test_the_ends_of_words_become_spaces(folder, tmp_path):
    backend = clip_bpe(
        {
            "a</w>": 0,
            "c": 1,
            "a": 2,
            "t</w>": 3,
            "ca": 4,
            "cat</w>": 5,
            "<|startoftext|>": 6,
            "<|endoftext|>": 7,
        },
        [("c", "a"), ("ca", "t</w>")],
    )
    shutil.copy(folder / "config.json", tmp_path)
    processor_of(folder, tmp_path)
    backend.save(str(tmp_path / "tokenizer.json"))
    settings = {"model_max_length": 8, "pad_token": "<|endoftext|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / "special_tokens_map.json").unlink(missing_ok=True)
    processor = AutoProcessor.from_pretrained(tmp_path)
    ids = processor(text="a cat").input_ids
    assert ids == [6, 0, 5, 7]
    assert processor.decode([*ids, 7]) == "<|startoftext|>a cat <|endoftext|><|endoftext|>"
    assert processor.decode(ids, skip_special_tokens=True) == "a cat"


def test_spaces_are_tidied_where_the_files_say_so(folder, tmp_path):
    class Backend:
        model = None

        def decode(self, ids, *, skip_special_tokens):
            return "it 's a cat , is n't it ?"

    shutil.copy(folder / "config.json", tmp_path)
    for settings, text in (
        ({"clean_up_tokenization_spaces": True}, "it's a cat, isn't it?"),
        ({"clean_up_tokenization_spaces": False}, "it 's a cat , is n't it ?"),
    ):
        tokenizer = processor_of(folder, tmp_path, tokenizer_config=settings).tokenizer
        tokenizer.tokenizer = dataclasses.replace(tokenizer.tokenizer, backend=Backend())
        assert tokenizer.decode([1]) == text


def test_a_separator_that_the_model_never_saw_becomes_padding(processor):
    tokenizer = dataclasses.replace(processor.tokenizer.tokenizer, dropped_id=11)
    assert CLIPTokenizer(tokenizer)(PROMPTS[1], padding=True).input_ids == [*IDS["short"][:-1], 0]
    assert tokenizer(PROMPTS[1]).ids[0, :5].tolist() == [*IDS["short"][:-1], 0, 0]


def test_a_batch_is_a_plain_dict_too(processor):
    batch = processor(text=PROMPTS, images=pictures())
    assert type(batch.data) is dict
    assert set(batch.data) == {"input_ids", "attention_mask", "pixel_values"}
    assert len(jax.tree.leaves(processor(images=pictures(), return_tensors="jax"))) == 1


# Images


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
@pytest.mark.parametrize(
    ("low", "high"), [(0, 255), (-1, 1), (-0.6, 0.9), (0, 2.5), (-40, 300)], ids=lambda value: str(value)
)
def test_floats_that_are_no_picture_are_refused(processor, kind, low, high):
    x = kind(np.linspace(low, high, 40 * 28 * 3, dtype="f4").reshape(1, 40, 28, 3))
    message = rf"values from {low} to {high}, which are not in \[0, 1\].*look like this.*do_rescale=True for"
    for call in (processor, jax.jit(lambda images: processor(images=x).pixel_values)):
        with pytest.raises(WordlightError, match=f"{message}.*do_rescale=False if"):
            call(images=x)
    as_meant = processor(images=x, do_rescale=False, return_tensors="np").pixel_values
    as_bytes = processor(images=x, do_rescale=True, return_tensors="np", do_normalize=False).pixel_values
    assert np.isfinite(as_meant).all()
    assert as_bytes.max() <= high / 255 + 1e-3


def test_floats_that_may_be_a_picture_are_taken(processor):
    bright = pictures() * 2.4 - 0.45  # sharpened or lit beyond the range
    normalised = (np.asarray(pictures()) - 0.45) / 0.27
    assert processor(images=bright).pixel_values
    assert processor(images=normalised, do_normalize=False).pixel_values
    with pytest.raises(WordlightError, match="not in"):
        processor(images=normalised)
    with pytest.raises(WordlightError, match="not in"):
        processor(images=pictures() * 255, do_normalize=False)
    assert processor(images=np.full((40, 28, 3), np.nan, "f4"), return_tensors="np").pixel_values.shape


def test_traced_floats_cannot_be_looked_into(processor):
    call = jax.jit(lambda x: processor(images=x, return_tensors="jax").pixel_values)
    assert call(pictures() * 255).shape == (1, 3, SIZE, SIZE)


def test_an_empty_batch_gives_empty_pixels(processor):
    pixels = processor(images=np.zeros((0, 40, 28, 3), "f4"), return_tensors="np").pixel_values
    assert pixels.shape == (0, 3, SIZE, SIZE)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "L", "P", "1", "CMYK"])
def test_pictures_of_other_modes_are_converted_before_the_resize(processor, mode):
    colours = (np.asarray(pictures()) * 255).astype(np.uint8)
    other = PIL.Image.fromarray(colours).convert(mode)
    if "A" in mode:
        other.putalpha(PIL.Image.fromarray(colours[..., 0]))
    given, expected = (
        processor(images=x, return_tensors="np").pixel_values for x in (other, other.convert("RGB"))
    )
    np.testing.assert_array_equal(given, expected)


def test_the_image_processor_has_its_other_name(processor):
    images = processor.image_processor
    np.testing.assert_array_equal(
        images.preprocess(pictures(), return_tensors="np").pixel_values,
        images(pictures(), return_tensors="np").pixel_values,
    )
