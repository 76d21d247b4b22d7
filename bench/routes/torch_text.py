"""Prompts to embeddings: transformers on PyTorch."""

from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from transformers import CLIPModel, CLIPTokenizer  # pyright: ignore[reportMissingImports]

from bench.inputs import prompts
from bench.serve import Run, serve


def prepare(task: dict[str, Any]) -> Run:
    """Load the checkpoint and its tokenizer."""
    model, texts = CLIPModel.from_pretrained(task["folder"]).eval(), prompts(task["count"])
    tokenizer = CLIPTokenizer.from_pretrained(task["folder"])

    @torch.no_grad()
    def run() -> float:
        tokens = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        pooled = model.text_model(**tokens).pooler_output
        embeds = torch.nn.functional.normalize(model.text_projection(pooled), dim=-1)
        return float(embeds.abs().sum())

    return run


if __name__ == "__main__":
    serve(prepare)
