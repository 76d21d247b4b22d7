"""How the shipped models are made: their words, their batches, and a second course with more words."""

import jax
import numpy as np
import pytest

from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.model import ClipModel, init_params
from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.tokenizer_files import write_word_level_tokenizer
from wordlight.data.world.batches import DISTORTED, DISTRACTORS
from wordlight.data.world.captions import GUIDE_WORDS, VOCABULARY
from wordlight.data.world.dataset import table_shares
from wordlight.data.world.objects import KIND_NAMES
from wordlight.train.embedded import CONTEXT_LENGTH, RECIPES, batches, make_config, with_words

GUIDES = [recipe for recipe in RECIPES if recipe.name.startswith("demo")]
JUDGES = [recipe for recipe in RECIPES if recipe.name.startswith("judge")]
VIEWS = 3


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """One for the judges, one for the guides."""

    def made(words):
        folder = tmp_path_factory.mktemp("words")
        write_word_level_tokenizer(folder, words, CONTEXT_LENGTH)
        return Tokenizer.from_folder(folder)

    return made(JUDGES[0].vocabulary), made(GUIDES[0].vocabulary)


def first_batch(recipe, tokenizer):
    table = np.random.default_rng(0).integers(0, 80, (len(KIND_NAMES), VIEWS, 64, 64, 6), dtype=np.uint8)
    return next(batches(recipe, tokenizer, table, ImageSpec((64, 64))))


def test_guides_know_words_that_judges_do_not():
    assert GUIDES
    assert JUDGES
    assert all(set(recipe.vocabulary) == {*VOCABULARY, *GUIDE_WORDS} for recipe in GUIDES)
    assert all(set(recipe.vocabulary) == set(VOCABULARY) for recipe in JUDGES)
    assert not set(VOCABULARY) & set(GUIDE_WORDS)


def test_guides_and_judges_share_no_seed_and_no_picture():
    assert not {r.table_seed for r in GUIDES} & {r.table_seed for r in JUDGES}
    assert len({recipe.seed for recipe in RECIPES}) == len(RECIPES)


def test_the_shares_of_a_table_are_those_of_its_views():
    shares = table_shares(1, VIEWS)
    assert shares.shape == (len(KIND_NAMES), VIEWS, 4)
    np.testing.assert_allclose(shares.sum(axis=-1), 1, atol=1e-6)


def test_a_judges_batch_has_a_true_caption_for_every_picture(tokenizers):
    batch = first_batch(JUDGES[1], tokenizers[0])
    assert batch.pixels.shape == (JUDGES[1].batch, 64, 64, 3)
    assert batch.truth.shape == (JUDGES[1].batch, len(batch.ids))
    assert (np.asarray(batch.truth).sum(axis=1) > 0).all()


def test_a_guides_batch_also_has_sides_and_distorted_objects(tokenizers):
    recipe = GUIDES[0]
    batch, again = (first_batch(recipe, tokenizers[1]) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, batch, again)
    assert batch.truth.shape == (recipe.batch, len(batch.ids))
    truth = np.asarray(batch.truth)
    assert (truth.sum(axis=1) > 0).all()
    others, distorted = round(recipe.batch * DISTRACTORS), round(recipe.batch * DISTORTED)
    [rows] = np.nonzero(truth[:, -1])
    assert rows.tolist() == list(range(recipe.batch - others - distorted, recipe.batch - others))
    assert (truth[rows].sum(axis=1) == 1).all()


def test_a_model_that_learns_more_words_keeps_those_it_has(tokenizers):
    recipe, (few, many) = GUIDES[0], tokenizers
    configs = [make_config(recipe, t.backend.get_vocab_size()) for t in (few, many)]
    old, fresh = (init_params(jax.random.key(i), config) for i, config in enumerate(configs))
    params = with_words(ClipModel(old, configs[0], ImageSpec((64, 64)), few), fresh, many)
    text = "a red car"
    for tokens, kept in zip(few.encode(text)[0], many.encode(text)[0], strict=True):
        np.testing.assert_array_equal(params["text"]["tokens"][kept], old["text"]["tokens"][tokens])
    new = many.backend.get_vocab()["overhead"]
    np.testing.assert_array_equal(params["text"]["tokens"][new], fresh["text"]["tokens"][new])
    assert jax.tree.map(np.shape, params) == jax.tree.map(np.shape, fresh)
    before = ClipModel(old, configs[0], ImageSpec((64, 64)), few).encode_text(text)
    after = ClipModel(params, configs[1], ImageSpec((64, 64)), many).encode_text(text)
    np.testing.assert_allclose(after, before, atol=1e-5)
