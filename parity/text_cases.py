"""Text: ids of transformers' CLIPTokenizer on OpenAI's vocabulary, and the entries of it that the tests need.

The whole vocabulary comes with the open_clip package and stays in its environment. A byte-pair encoding
applies merges in the order of their rank, so the merges that a text really uses, in that order, give the same
ids without the rest.
"""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import open_clip
import tokenizers
import transformers

from wordlight.clip.config_open_clip import open_clip_text_rules
from wordlight.clip.tokenizer import TextRules, Tokenizer
from wordlight.clip.tokenizer_files import END, OPENAI_FILE, OPENAI_MERGES, START, openai_bpe, read_merges

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
SUBSET = GOLDEN / "clip_text"
VOCABULARY = Path(open_clip.__file__).parent / OPENAI_FILE

PROMPTS = (
    "hello world",
    "You should've done this",
    "résumé",
    "re\u0301sume\u0301",
    "",
    "A PHOTO of a Cat",
    "  a photo\n of a  cat ",
    "cat" + " cat" * 74,
)
# Compared live only, as they would need many more entries of the vocabulary.
LIVE_PROMPTS = (
    "naïve café №5 ½",
    "emoji 😀 and 日本語",
    "don't!!! it's 100 times 3.14",
    "İstanbul",
    "x" * 60,
    "Ａｆｕｌｌ width, \x00 control",
    "<|endoftext|> inside",
    "a yellow bulldozer; a red mushroom / on a hill (oil painting)",
)


def reference() -> transformers.CLIPTokenizer:
    """Return transformers' tokenizer on OpenAI's whole vocabulary."""
    merges = read_merges(gzip.decompress(VOCABULARY.read_bytes()).decode())[:OPENAI_MERGES]
    return transformers.CLIPTokenizer(vocab=openai_bpe(VOCABULARY).get_vocab(), merges=merges)


def cases() -> dict[str, np.ndarray]:
    """Return the padded ids of every golden prompt, by transformers."""
    ids = reference()(list(PROMPTS), padding="max_length", max_length=77)["input_ids"]
    return {"ids": np.asarray(ids, np.int32)}


def write_golden() -> None:
    """Write the prompts, their ids, and the entries of the vocabulary that they use."""
    SUBSET.mkdir(parents=True, exist_ok=True)
    rows = [
        {"prompt": p, "ids": ids}
        for p, ids in zip(PROMPTS, reference()(list(PROMPTS))["input_ids"], strict=True)
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
    (SUBSET / "ids.json").write_text(f"[\n{lines}\n]\n")
    vocabulary, merges = used_entries()
    (SUBSET / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False) + "\n", encoding="utf-8")
    text = "".join(f"{a} {b}\n" for a, b in merges)
    (SUBSET / "merges.txt").write_text("#version: 0.2\n" + text, encoding="utf-8")


def used_entries() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the part of the vocabulary and of the merges that the golden prompts use."""
    backend = openai_bpe(VOCABULARY)
    ids = backend.get_vocab()
    ranked = read_merges(gzip.decompress(VOCABULARY.read_bytes()).decode())[:OPENAI_MERGES]
    ranks = {pair: rank for rank, pair in enumerate(ranked)}
    used: set[tuple[str, str]] = set()
    letters: set[str] = set()
    for word in _words(backend):
        pieces = [*word[:-1], word[-1] + "</w>"]
        letters |= set(pieces)
        used |= _merges_of(pieces, ranks)
    tokens = letters | {a + b for a, b in used} | {START, END}
    return dict(sorted(((t, ids[t]) for t in tokens), key=lambda item: item[1])), sorted(
        used, key=ranks.__getitem__
    )


def _words(backend: tokenizers.Tokenizer) -> set[str]:
    """Return the words that the golden prompts fall into, in the letters that stand for bytes."""
    normalizer, splitter = backend.normalizer, backend.pre_tokenizer
    if normalizer is None or splitter is None:
        raise RuntimeError("CLIP's tokenizer lost its normaliser")
    texts = [normalizer.normalize_str(prompt) for prompt in PROMPTS]
    return {word for text in texts for word, _ in splitter.pre_tokenize_str(text)}


def _merges_of(pieces: list[str], ranks: dict[tuple[str, str], int]) -> set[tuple[str, str]]:
    """Return the merges of one word: always the pair of lowest rank (arXiv 1508.07909, algorithm 1)."""
    used = set()
    while True:
        pairs = [pair for pair in pairwise(pieces) if pair in ranks]
        if not pairs:
            return used
        best = min(pairs, key=ranks.__getitem__)
        used.add(best)
        pieces = _merge(pieces, best)


def _merge(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    for piece in pieces:
        if merged and (merged[-1], piece) == pair:
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def check_live() -> dict[str, tuple[float, float]]:
    """Compare with transformers and open_clip on every prompt; return (ids that differ, how many may)."""
    prompts = [*PROMPTS, *LIVE_PROMPTS]
    as_hf = Tokenizer.find(VOCABULARY.parent, 77, rules=TextRules("none"))
    rules = open_clip_text_rules({"model_cfg": {"text_cfg": {}}})
    as_open_clip = Tokenizer.find(VOCABULARY.parent, 77, rules=rules)
    if as_hf is None or as_open_clip is None:
        raise RuntimeError("open_clip lost its vocabulary")
    expected = reference()(prompts, padding="max_length", max_length=77, truncation=True)["input_ids"]
    # open_clip spells its special tokens otherwise.
    plain = [prompt for prompt in prompts if END not in prompt]
    ids = as_open_clip(plain).ids
    theirs = open_clip.tokenizer.SimpleTokenizer()(plain).numpy()
    return {
        "clip-text-ids/transformers": (float(np.sum(as_hf(prompts).ids != np.asarray(expected))), 0.0),
        "clip-text-ids/open_clip": (float(np.sum(ids != theirs)), 0.0),
    }


if __name__ == "__main__":
    write_golden()
    print(check_live())
