"""A checkpoint from disk to its first loss: transformers on PyTorch."""

from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from transformers import CLIPModel, CLIPTokenizer  # pyright: ignore[reportMissingImports]

from bench.serve import Run, serve


def prepare(task: dict[str, Any]) -> Run:
    """Load the checkpoint and embed a prompt."""
    model = CLIPModel.from_pretrained(task["folder"]).eval()
    tokens = CLIPTokenizer.from_pretrained(task["folder"])(["a yellow bulldozer"], return_tensors="pt")
    pixels = torch.full((1, 3, 224, 224), 0.1)

    @torch.no_grad()
    def run() -> float:
        return -float(model(pixel_values=pixels, **tokens).logits_per_image.mean() / model.logit_scale.exp())

    return run


if __name__ == "__main__":
    serve(prepare)
