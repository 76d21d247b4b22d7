"""CLIP's loss and its gradient at the pixels: transformers on PyTorch, eager or compiled."""

import contextlib
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from transformers import CLIPModel  # pyright: ignore[reportMissingImports]

from bench.inputs import pixels_and_target
from bench.serve import Run, serve


class Loss(torch.nn.Module):
    """Minus the mean cosine to a target."""

    def __init__(self, model: Any, target: Any):
        super().__init__()
        self.vision, self.projection = model.vision_model, model.visual_projection
        self.register_buffer("target", target)

    def forward(self, pixels: Any) -> Any:
        """Return the loss of preprocessed pixels."""
        embeds = self.projection(self.vision(pixel_values=pixels).pooler_output)
        return -(torch.nn.functional.normalize(embeds.float(), dim=-1) @ self.target).mean()


def prepare(task: dict[str, Any]) -> Run:
    """Load the checkpoint; `precision` is float32, autocast or bfloat16 (weights and all)."""
    precision, device = task["precision"], task.get("device", "cpu")
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    model = CLIPModel.from_pretrained(task["folder"], dtype=dtype).eval().requires_grad_(False).to(device)
    size, embed = model.config.vision_config.image_size, model.config.projection_dim
    pixels, target = (torch.tensor(x, device=device) for x in pixels_and_target(task["batch"], size, embed))
    loss = Loss(model, target).eval()
    loss = torch.compile(loss) if task.get("compile") else loss

    def run() -> float:
        inputs = pixels.to(dtype).requires_grad_()
        autocast = torch.autocast(device, torch.bfloat16) if precision == "autocast" else None
        with autocast or contextlib.nullcontext():
            value = loss(inputs)
        (gradient,) = torch.autograd.grad(value, inputs)
        assert gradient.shape == pixels.shape
        if device != "cpu":
            torch.cuda.synchronize()
        return float(value)

    return run


if __name__ == "__main__":
    serve(prepare)
