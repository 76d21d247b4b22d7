"""Prompts to embeddings: Wordlight."""

from pathlib import Path
from typing import Any

from bench.inputs import prompts
from bench.serve import Run, serve
from wordlight.clip.load import load


def prepare(task: dict[str, Any]) -> Run:
    """Load the checkpoint."""
    model, texts = load(Path(task["folder"])), prompts(task["count"])
    return lambda: float(abs(model.encode_text(texts)).sum())


if __name__ == "__main__":
    serve(prepare)
