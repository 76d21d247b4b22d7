"""Whether the committed golden files are still what the reference programs give."""

import json

import numpy as np

from parity import preprocess_cases, size_cases, text_cases, tower_cases

PIXEL_LIMIT = 1e-5  # of a normalised pixel, between two machines


def remake() -> None:
    """Write every golden file again."""
    preprocess_cases.write_golden()
    text_cases.write_golden()
    tower_cases.write_golden()
    size_cases.write_golden()


def check() -> dict[str, tuple[float, float]]:
    """Return (error, limit) of every golden file."""
    return {
        "golden/preprocess": (_preprocess_error(), PIXEL_LIMIT),
        "golden/text": (_text_error(), 0.0),
        **tower_cases.check_golden(),
        **size_cases.check_golden(),
    }


def _preprocess_error() -> float:
    now = preprocess_cases.cases()
    with np.load(preprocess_cases.GOLDEN) as stored:
        if set(stored) != set(now):
            return float("inf")
        return max(_difference(now[name], stored[name]) for name in now)


def _difference(now: np.ndarray, stored: np.ndarray) -> float:
    if now.dtype.kind == "U" or now.shape != stored.shape:
        return 0.0 if np.array_equal(now, stored) else float("inf")
    return float(np.abs(now.astype(np.float64) - stored).max())


def _text_error() -> float:
    """Return how many ids, tokens or merges differ."""
    rows = json.loads((text_cases.SUBSET / "ids.json").read_text())
    ids = text_cases.reference()(list(text_cases.PROMPTS))["input_ids"]
    expected = [{"prompt": p, "ids": i} for p, i in zip(text_cases.PROMPTS, ids, strict=True)]
    vocabulary, merges = text_cases.used_entries()
    stored = json.loads((text_cases.SUBSET / "vocab.json").read_text(encoding="utf-8"))
    lines = (text_cases.SUBSET / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]
    return float((rows != expected) + (stored != vocabulary) + (lines != [" ".join(m) for m in merges]))
