"""What guidance is often given by mistake, named before work starts."""

import jax
import jax.numpy as jnp
import pytest

import wordlight as wl
from wordlight.errors import WordlightError

pytestmark = pytest.mark.usefixtures("unchecked")
IMAGE = jnp.full((64, 64, 3), 0.5)


@pytest.fixture(scope="module")
def model():
    return wl.load("demo")


def test_the_name_of_a_model_is_not_a_model():
    with pytest.raises(WordlightError, match=r"The model is a str \('demo'\).*wl.load"):
        wl.Guidance.from_prompts("demo", "a red car")


@pytest.mark.parametrize("prompts", [[1], [["a red car"]]])
def test_prompts_are_text(model, prompts):
    with pytest.raises(WordlightError, match=r"A prompt is .*, not text.*Give strings"):
        wl.Guidance.from_prompts(model, prompts)


def test_files_are_not_opened(model):
    with pytest.raises(WordlightError, match=r"target image is a name, 'photo.png'.*Read it first"):
        wl.Guidance.from_images(model, "photo.png")


@pytest.mark.parametrize("key", [None, 0, jnp.ones(3)])
def test_views_need_a_key(model, key):
    config = wl.GuidanceConfig(views=wl.ViewConfig())
    guidance = wl.Guidance.from_prompts(model, "a red car", config=config)
    with pytest.raises(WordlightError, match=r"The key is a .*drawn from a key of JAX"):
        guidance(IMAGE, key)


@pytest.mark.parametrize("key", [jax.random.key(0), jax.random.PRNGKey(0)])
def test_both_kinds_of_keys_will_do(model, key):
    config = wl.GuidanceConfig(views=wl.ViewConfig())
    guidance = wl.Guidance.from_prompts(model, "a red car", config=config)
    assert jnp.isfinite(guidance(IMAGE, key)[0])


@pytest.mark.parametrize("options", [{"value_range": "0-1"}, {"layout": "NHWC"}])
def test_ranges_and_layouts_have_names(options):
    with pytest.raises(WordlightError, match=r"There is no .* '.*'. Other programs .* Use one of '"):
        wl.GuidanceConfig(**options)


@pytest.mark.parametrize("options", [{"zoom": 1.0}, {"blur": (1.0,)}])
def test_ranges_are_two_numbers(options):
    with pytest.raises(WordlightError, match="it is a range, two numbers"):
        wl.ViewConfig(**options)
