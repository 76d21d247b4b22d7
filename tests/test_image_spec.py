"""How a checkpoint wants its images, from the files that the reference programs write."""

import dataclasses
import json

import numpy as np
import pytest

from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.preprocess import preprocess
from wordlight.clip.processing import read_processing
from wordlight.errors import WordlightError

CLIP = ImageSpec((224, 224))
HALF = (0.5, 0.5, 0.5)
SIGLIP = ImageSpec((32, 32), "squash", (32, 32), crop=False, mean=HALF, std=HALF)


def image(*shape, seed=0):
    return np.random.default_rng(seed).random((*shape, 3)).astype("f4")


HF = {
    "crop_size": 224,
    "do_center_crop": True,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "CLIPFeatureExtractor",
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
    "size": 224,
}
NEW = {
    "crop_size": {"height": 224, "width": 224},
    "do_convert_rgb": True,
    "image_processor_type": "CLIPImageProcessor",
    "rescale_factor": 0.00392156862745098,
    "size": {"shortest_edge": 224},
}


def test_every_spelling_of_the_clip_configuration_is_the_same_spec():
    assert ImageSpec.from_hf(HF, 224) == ImageSpec.from_hf(NEW) == ImageSpec.from_hf({}, 224)
    assert ImageSpec.from_hf(HF, (224, 224)) == dataclasses.replace(CLIP, resize_to=(224, 224))
    fast = ImageSpec.from_hf({"image_processor": NEW, "processor_class": "CLIPProcessor"}, 224)
    assert fast == dataclasses.replace(ImageSpec.from_hf(NEW), mode="hf-torchvision")
    assert hash(fast) != hash(CLIP)


def test_a_resize_larger_than_the_crop_is_kept():
    spec = ImageSpec.from_hf(NEW | {"size": {"shortest_edge": 256}}, 224)
    assert spec.resized_size((512, 512)) == (256, 256)
    assert preprocess(image(64, 64), spec).shape == (224, 224, 3)


def test_siglip_squashes():
    config = {
        "image_processor_type": "SiglipImageProcessor",
        "size": {"height": 32, "width": 32},
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    spec = ImageSpec.from_hf(config, 32)
    assert (spec.resize, spec.crop) == ("squash", False)
    np.testing.assert_allclose(preprocess(np.zeros((10, 20, 3), "f4"), spec), -1, atol=1e-6)


def test_other_rescalings_are_folded_into_mean_and_deviation():
    spec = ImageSpec.from_hf(NEW | {"rescale_factor": 1 / 127.5}, 224)
    pixels = preprocess(np.full((8, 8, 3), 0.5, "f4"), spec)
    np.testing.assert_allclose(pixels[0, 0], (1.0 - np.array(CLIP.mean)) / np.array(CLIP.std), atol=1e-5)


def test_open_clip_configuration():
    config = {
        "model_cfg": {"vision_cfg": {"image_size": 64}},
        "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.25] * 3, "interpolation": "bilinear"},
    }
    assert ImageSpec.from_open_clip(config) == ImageSpec(
        (64, 64), interpolation="bilinear", mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25), mode="open_clip"
    )
    longest = ImageSpec.from_open_clip({"resize_mode": "longest", "fill_color": 255}, (8, 8))
    assert (longest.resize, longest.fill, longest.crop) == ("longest", 1.0, True)
    assert ImageSpec.from_open_clip({"resize_mode": "squash", "size": [8, 9]}).size == (8, 9)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"size": {"edge": 3}}, "size"),
        ({"size": -1}, r"\(-1, -1\)"),
        ({"size": "big"}, "size 'big'"),
        ({"crop_size": [1, 2, 3]}, "positive integers"),
        ({"crop_size": 200}, r"\(200, 200\).*\(224, 224\)"),
        ({"resample": 5}, "hamming|resample"),
        ({"resample": None}, "resample None"),
        ({"image_mean": [0.5, 0.5]}, "2 numbers"),
        ({"image_std": [0, 1, 1]}, "std"),
        ({"image_std": ["a", 1, 1]}, "finite number"),
        ({"image_mean": [float("nan"), 1, 1]}, "finite"),
        ({"do_resize": "yes"}, "do_resize"),
        ({"do_center_crop": False}, "do_center_crop is false"),
        ({"do_pad": True}, "do_pad"),
        ({"max_num_patches": 256}, "max_num_patches"),
        ({"use_square_size": True}, "use_square_size"),
        ({"image_processor": "CLIPImageProcessor"}, "image_processor 'CLIPImageProcessor' is not an object"),
        ({"rescale_factor": 0}, "rescale_factor"),
        ({"rescale_factor": None}, "rescale_factor None"),
        ({"size": {"shortest_edge": 224, "longest_edge": 512}}, "neither"),
    ],
)
def test_a_bad_configuration_is_refused(config, message):
    with pytest.raises(WordlightError, match=f"Not an image preprocessing.*({message}).*Correct"):
        ImageSpec.from_hf(NEW | config, 224)


@pytest.mark.parametrize(
    "change",
    [
        {"size": (0, 4)},
        {"size": (4.0, 4)},
        {"resize": "stretch"},
        {"mode": "tf"},
        {"rounding": "up"},
        {"interpolation": "hermite"},
        {"std": (1.0, 0.0, 1.0)},
        {"antialias": False},
        {"resize_to": (4, 5)},
    ],
)
def test_an_impossible_spec_is_refused(change):
    with pytest.raises(WordlightError, match="Not an image preprocessing"):
        ImageSpec(**({"size": (4, 4)} | change))


# Families, missing entries, nulls


def test_without_settings_each_family_has_its_own():
    assert ImageSpec.from_hf({}, 32, family="siglip") == SIGLIP
    assert ImageSpec.from_hf({}, 32) == ImageSpec((32, 32), resize_to=(32, 32))
    assert ImageSpec.from_hf({"resample": 2}, 32, family="siglip") == dataclasses.replace(
        SIGLIP, interpolation="bilinear"
    )


def test_the_class_that_a_file_names_wins_over_the_family():
    assert ImageSpec.from_hf(NEW, family="siglip") == ImageSpec.from_hf(NEW)
    assert ImageSpec.from_hf({"image_processor_type": "SiglipImageProcessor"}, 32) == SIGLIP


def test_a_class_that_is_null_is_not_named():
    assert ImageSpec.from_hf({"image_processor_type": None}, 32, family="siglip") == SIGLIP


@pytest.mark.parametrize("name", ["image_mean", "image_std", "size", "crop_size"])
def test_values_that_are_null_are_the_defaults(name):
    assert ImageSpec.from_hf(NEW | {name: None}, 224) == ImageSpec.from_hf(NEW, 224)
    assert ImageSpec.from_hf({name: None}, 32, family="siglip") == SIGLIP


def test_a_step_that_is_null_is_left_out():
    squash = NEW | {"size": {"height": 224, "width": 224}}
    for name in ("do_center_crop", "do_normalize", "do_rescale"):
        off = ImageSpec.from_hf(squash | {name: None}, 224)
        assert off == ImageSpec.from_hf(squash | {name: False}, 224) != ImageSpec.from_hf(squash, 224)
    fast = {"image_processor_type": "SiglipImageProcessorFast", "do_center_crop": None, "crop_size": None}
    assert ImageSpec.from_hf(fast, 32) == dataclasses.replace(SIGLIP, mode="hf-torchvision")


def test_the_number_of_a_step_that_is_off_is_not_read():
    off = {"do_rescale": False, "rescale_factor": None}
    assert ImageSpec.from_hf(NEW | off, 224) == ImageSpec.from_hf(NEW | {"do_rescale": False}, 224)
    off = {"do_resize": False, "resample": None}
    assert ImageSpec.from_hf(NEW | off, 224).resize == "none"


def test_a_mean_of_zero_is_no_default():
    assert ImageSpec.from_hf(NEW | {"image_mean": 0, "image_std": 1}, 224).mean == (0, 0, 0)


def test_a_whole_number_keeps_the_proportions_whatever_the_class():
    siglip = {"image_processor_type": "SiglipImageProcessor", "size": 32}
    with pytest.raises(WordlightError, match="do_center_crop is false and size 32 keeps the proportions"):
        ImageSpec.from_hf(siglip, 32)
    cropped = ImageSpec.from_hf(siglip | {"do_center_crop": True}, 32)
    assert cropped == dataclasses.replace(SIGLIP, resize="shortest", crop=True)


def test_one_file_that_two_programs_write_is_read_as_the_older_ones():
    assert ImageSpec.from_hf(NEW).mode == "hf-pil"
    assert (
        ImageSpec.from_hf(NEW | {"image_processor_type": "CLIPImageProcessorFast"}).mode == "hf-torchvision"
    )
    assert ImageSpec.from_hf({"image_processor": NEW}).mode == "hf-torchvision"
    assert ImageSpec.from_hf({"image_processor": NEW}, mode="hf-pil") == ImageSpec.from_hf(NEW)


# Which file of a folder


BILINEAR = NEW | {"resample": 2, "size": {"shortest_edge": 32}, "crop_size": 32}
BOX = BILINEAR | {"resample": 4}
MODELS = {
    kind: {"model_type": kind, "vision_config": {"image_size": 32, "patch_size": 8}}
    for kind in ("clip", "siglip")
}


def spec_of(folder, kind="clip", **files):
    for name, content in ({"config": MODELS[kind]} | files).items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return read_processing(folder).image_spec


def test_the_processors_file_comes_first(tmp_path):
    both = {"processor_config": {"image_processor": BOX}, "preprocessor_config": BILINEAR}
    spec = spec_of(tmp_path, **both)
    assert (spec.interpolation, spec.mode) == ("box", "hf-torchvision")


@pytest.mark.parametrize("image_processor", [{}, {"image_processor": None}])
def test_a_processors_file_without_images_says_nothing_of_them(tmp_path, image_processor):
    named = {"processor_class": "CLIPProcessor", **image_processor}
    spec = spec_of(tmp_path, processor_config=named, preprocessor_config=BILINEAR)
    assert (spec.interpolation, spec.mode) == ("bilinear", "hf-pil")


@pytest.mark.parametrize("files", [{}, {"processor_config": {"processor_class": "SiglipProcessor"}}])
def test_a_folder_without_settings_has_those_of_its_model(tmp_path, files):
    spec = spec_of(tmp_path, "siglip", **files)
    assert spec == SIGLIP
    np.testing.assert_allclose(preprocess(np.ones((10, 20, 3), "f4"), spec), 1, atol=1e-6)
    assert spec_of(tmp_path, "clip", **files) == ImageSpec((32, 32), resize_to=(32, 32))


def test_settings_that_name_no_class_are_read_as_the_models(tmp_path):
    settings = {"do_resize": True, "size": {"height": 32, "width": 32}}
    assert spec_of(tmp_path, "siglip", preprocessor_config=settings) == SIGLIP
