"""The list of published checkpoints: sizes add up to the published numbers of parameters."""

import pytest

from wordlight.clip.known_models import known_models

MODELS = {model.name: model for model in known_models()}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("openai/clip-vit-base-patch32", 151_277_313), ("openai/clip-vit-large-patch14", 427_616_513)],
)
def test_parameters_are_counted_to_the_last_one(name, parameters):
    assert MODELS[name].parameters == parameters


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("openai/clip-vit-base-patch16", 149.6),
        ("laion/CLIP-ViT-H-14-laion2B-s32B-b79K", 986.1),
        ("laion/CLIP-ViT-bigG-14-laion2B-39B-b160k", 2539.6),
        ("google/siglip-base-patch16-224", 203.2),
        ("google/siglip-so400m-patch14-384", 878.0),
        ("google/siglip2-base-patch16-224", 375.2),
    ],
)
def test_parameters_are_those_that_are_published(name, millions):
    assert MODELS[name].parameters / 1e6 == pytest.approx(millions, abs=0.06)


def test_names_are_ids_on_the_hub_and_appear_once():
    names = [model.name for model in known_models()]
    assert len(set(names)) == len(names)
    assert all(name.count("/") == 1 for name in names)
    assert {model.family for model in known_models()} >= {"OpenAI", "LAION", "SigLIP", "SigLIP 2"}


def test_sides_of_patches_and_images_are_those_in_the_names():
    for model in known_models():
        vision = model.config.vision
        if model.name.startswith("google/"):
            *_, patch, side = model.name.split("-")
            assert (f"patch{vision.patch_size}", str(vision.image_size[0])) == (patch, side)  # pyright: ignore
