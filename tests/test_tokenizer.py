"""Tokenizers against transformers' ids on OpenAI's vocabulary, of which `golden/clip_text` holds a part."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.tokenizer_files import OPENAI_FILE, read_tokenizer_files, write_word_level_tokenizer
from wordlight.errors import WordlightError

CLIP_FILES = Path(__file__).parent / "golden" / "clip_text"
GOLDEN = json.loads((CLIP_FILES / "ids.json").read_text())
WORDS = ["a", "bulldozer", "front", "grey", "in", "of", "photo", "red", "yellow"]


@pytest.fixture(scope="module")
def clip() -> Tokenizer:
    return Tokenizer.from_folder(CLIP_FILES, 77)


@pytest.fixture
def closed(tmp_path) -> Tokenizer:
    write_word_level_tokenizer(tmp_path, WORDS, 8)
    return Tokenizer.from_folder(tmp_path)


# OpenAI's byte pairs


@pytest.mark.parametrize("case", GOLDEN, ids=[case["prompt"][:20] for case in GOLDEN])
def test_ids_are_those_of_transformers(clip, case):
    ids, mask = clip(case["prompt"])
    length = len(case["ids"])
    np.testing.assert_array_equal(ids[0, :length], case["ids"])
    assert (ids[0, length:] == 49407).all()
    np.testing.assert_array_equal(mask[0], np.arange(77) < length)


@pytest.mark.parametrize(
    ("prompt", "ids"),
    [
        ("hello world", [3306, 1002]),
        ("You should've done this", [592, 1535, 1200, 1700, 589]),
        ("résumé", [29106, 7054, 4166]),
        ("", []),
        ("A PHOTO of a Cat", [320, 1125, 539, 320, 2368]),
    ],
)
def test_ids_are_the_published_ones(clip, prompt, ids):
    assert clip.encode(prompt) == [[49406, *ids, 49407]]


def test_upper_case_composed_letters_and_spaces_do_not_matter(clip):
    assert clip.encode("A PHOTO of a Cat") == clip.encode("  a photo\n of a  cat ")
    assert clip.encode("résumé") == clip.encode("re\u0301sume\u0301")


def test_several_prompts_are_padded_to_the_context(clip):
    ids, mask = clip(["hello world", ""])
    assert ids.shape == mask.shape == (2, 77)
    assert ids.dtype == mask.dtype == np.int32
    np.testing.assert_array_equal(mask.sum(axis=1), [4, 2])


def test_a_prompt_too_long_is_refused_with_the_limit(clip):
    with pytest.raises(WordlightError, match=r"'cat cat.*has 82 tokens.*limit is 77.*truncate=True"):
        clip("cat " * 80)


def test_truncation_keeps_the_end_token_and_warns(clip):
    with pytest.warns(UserWarning, match=r"82 tokens and was cut to the limit of 77"):
        ids, mask = clip("cat " * 80, truncate=True)
    assert ids.shape == (1, 77)
    assert ids[0, 0] == 49406
    assert ids[0, -2:].tolist() == [2368, 49407]
    assert mask.all()


def test_decoding_gives_the_text_back(clip):
    prompts = ["hello world", "you should 've done this", "résumé", ""]
    assert clip.decode(clip(prompts).ids) == prompts
    assert clip.decode([49406, 3306, 1002, 49407, 0, 0]) == ["hello world"]


def test_every_kind_of_file_gives_the_same_ids(clip, tmp_path):
    clip.backend.save(str(tmp_path / "tokenizer.json"))
    again = Tokenizer.from_folder(tmp_path, 77)
    assert again.encode("A PHOTO of a Cat") == clip.encode("A PHOTO of a Cat")


def test_openai_file_numbers_bytes_then_merges_then_start_and_end(tmp_path):
    lines = '"bpe_simple_vocab_16e6.txt#version: 0.2\nh i</w>\nc a\nca t</w>\n'
    (tmp_path / OPENAI_FILE).write_bytes(gzip.compress(lines.encode()))
    tokenizer = Tokenizer.from_folder(tmp_path, 8)
    assert tokenizer.encode("hi cat é") == [[515, 512, 514, 127, 358, 516]]


def test_padding_follows_the_configuration(tmp_path):
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(CLIP_FILES / name, tmp_path)
    config = {"model_max_length": 77, "pad_token": {"content": "a", "__type": "AddedToken"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer.from_folder(tmp_path)
    ids, mask = tokenizer("hello world")
    assert (tokenizer.context_length, ids[0, -1], mask[0].sum()) == (77, 64, 4)


def test_equal_files_make_equal_tokenizers(clip, closed):
    again = Tokenizer.from_folder(CLIP_FILES, 77)
    assert again == clip
    assert hash(again) == hash(clip)
    assert clip != Tokenizer.from_folder(CLIP_FILES, 16)
    assert clip != closed


# Closed vocabularies


def test_word_level_ids_are_padding_unknown_sorted_words_start_end(closed):
    words = closed.backend.get_vocab()
    assert [words[w] for w in ("<pad>", "<unk>", *sorted(WORDS), "<start>", "<end>")] == list(
        range(len(WORDS) + 4)
    )
    ids, mask = closed("A Yellow, bulldozer!")
    assert ids.tolist() == [[11, 2, 10, 3, 12, 0, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 1, 1, 0, 0, 0]]
    assert closed.decode(ids) == ["a yellow bulldozer"]
    assert closed("").ids.tolist() == [[11, 12, 0, 0, 0, 0, 0, 0]]


def test_unknown_words_are_refused_with_the_words_that_are_known(closed):
    message = (
        r"Unknown words 'Dragon', 'blue'\. .*closed vocabulary.*It knows: a, bulldozer, front, .* yellow\. "
        r".*wordlight\.load\('openai/clip-vit-base-patch32'\)"
    )
    with pytest.raises(WordlightError, match=message):
        closed(["a red bulldozer", "a blue Dragon"])
    with pytest.raises(WordlightError, match="Unknown word '🐉'"):
        closed("a 🐉")


@pytest.mark.parametrize("words", [[], ["two words"], ["Upper"], ["it's"], [""]])
def test_words_that_could_never_be_found_are_refused(tmp_path, words):
    with pytest.raises(WordlightError, match="The vocabulary"):
        write_word_level_tokenizer(tmp_path, words, 8)


# Refusals


def test_a_folder_without_tokenizer_files(tmp_path):
    assert Tokenizer.find(tmp_path, 77) is None
    with pytest.raises(WordlightError, match=r"no tokenizer files.*Add tokenizer.json"):
        Tokenizer.from_folder(tmp_path, 77)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [([], "list is empty"), (["a", 3], "3 .int., not a string"), ([["a"]], "not a string"), ([None], "None")],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_not_text_is_refused(clip, prompts, message):
    with pytest.raises(WordlightError, match=message):
        clip(prompts)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tokenizer.json": "{"}, "not a readable tokenizer file"),
        ({"tokenizer.json": "[1, 2]"}, "not a readable tokenizer file"),
        ({"vocab.json": "{}"}, "vocab.json without its other half"),
        ({"merges.txt": "a b\n"}, "merges.txt without its other half"),
        ({"vocab.json": "[]", "merges.txt": "a b\n"}, "JSON list"),
        ({"vocab.json": '{"a": "b"}', "merges.txt": "a b\n"}, "not an integer"),
        ({"vocab.json": '{"a": 1}', "merges.txt": "a b\n"}, "lacks .*startoftext"),
        (
            {"vocab.json": '{"<|startoftext|>": 1, "<|endoftext|>": 2}', "merges.txt": "a b\n"},
            "do not fit together",
        ),
        ({"vocab.json": "{}", "merges.txt": "a b c\n"}, "'a b c', not two tokens"),
        ({OPENAI_FILE: "not gzip"}, "not a readable tokenizer file"),
    ],
)
def test_damaged_files_are_refused(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(WordlightError, match=message):
        Tokenizer.find(tmp_path, 77)


def test_settings_that_do_not_fit_are_refused(tmp_path):
    shutil.copytree(CLIP_FILES, tmp_path, dirs_exist_ok=True)
    with pytest.raises(WordlightError, match="no model_max_length"):
        Tokenizer.find(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"pad_token": "<pad>", "model_max_length": 1e30}')
    with pytest.raises(WordlightError, match="padding token '<pad>'"):
        Tokenizer.find(tmp_path, 77)


def test_a_limit_of_no_limit_is_none(tmp_path):
    shutil.copytree(CLIP_FILES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 1000000000000000019884624838656}')
    source = read_tokenizer_files(tmp_path)
    assert source is not None
    assert source.context_length is None
