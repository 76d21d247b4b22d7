"""PyTorch modules inside JAX beside PyTorch alone, and a CLIP loss on the host beside the native tower."""

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel
from transformers.utils import logging

from wordlight import host
from wordlight.clip.load import load
from wordlight.errors import WordlightError

Result = tuple[float, float]
SAME = 1e-6  # the same PyTorch code on the same numbers; another batch size may sum in another order
LIMIT = 1e-5  # another program: norm of the difference over the norm
IMAGES = np.random.default_rng(0).standard_normal((3, 3, 16, 16), dtype=np.float32)


class Sketch(torch.nn.Module):
    """A small network that changes its input in place, returns a dict with an integer and skips an input."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cut = torch.nn.Conv2d(3, 8, 4, stride=4)
        self.head = torch.nn.Linear(128, 5)

    def forward(self, image: torch.Tensor, shift: torch.Tensor, unused: torch.Tensor) -> dict[str, Any]:
        """Return logits, a pair and the class of `[..., 3, 16, 16]`."""
        image.mul_(0.5).add_(shift)
        hidden = torch.nn.functional.gelu(self.cut(image)).flatten(-3)
        logits = self.head(hidden)
        return {"logits": logits, "pair": (hidden.mean(-1), None), "class": logits.argmax(-1)}


def loss_of(outputs: dict[str, Any], power: Callable[[Any], Any]) -> Any:
    """Return a number that depends on every float result, with the same code in both programs."""
    return (power(outputs["logits"]) * 0.3).sum() + (power(outputs["pair"][0]) * 2.0).sum()


def reference(image: np.ndarray, shift: np.ndarray) -> list[np.ndarray]:
    """Return logits, class, and the gradients of the loss, from PyTorch alone."""
    inputs = [torch.tensor(image, requires_grad=True), torch.tensor(shift, requires_grad=True)]
    outputs = Sketch().eval()(inputs[0].clone(), inputs[1], torch.zeros(()))
    loss_of(outputs, lambda x: x**3).backward()
    tensors = [outputs["logits"].detach(), outputs["class"], *(leaf.grad for leaf in inputs)]
    return [np.asarray(tensor) for tensor in tensors]


def ours(image: Any, shift: Any, network: host.HostFunction) -> list[Any]:
    """Return the same through JAX, and the gradient of the unused input."""

    def loss(image: Any, shift: Any, unused: Any) -> Any:
        outputs = network(image, shift, unused)
        return loss_of(outputs, lambda x: x**3), (outputs["logits"], outputs["class"])

    (_, values), gradients = jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True)(image, shift, 0.0)
    return [*values, *gradients]


def check_module() -> Iterator[tuple[str, Result]]:
    """One image and one shift, directly, compiled, and mapped over images."""
    network = host.torch(Sketch().eval())
    shift = np.float32(0.25)
    alone = [reference(image, shift) for image in IMAGES]
    stacked = [np.stack(leaves) for leaves in zip(*alone, strict=True)]
    for name, run in (("direct", ours), ("jit", jax.jit(ours, static_argnums=2))):
        got = run(IMAGES[0], shift, network)
        yield f"host/{name}", (worst(got, [*alone[0], np.zeros(())]), SAME)
    for method in ("sequential", "broadcast_all"):
        mapped = jax.jit(
            jax.vmap(partial(ours, network=host.torch(one_or_many, vmap_method=method)), (0, None))
        )
        yield f"host/vmap {method}", (worst(mapped(IMAGES, shift), [*stacked, np.zeros(3)]), SAME)


SKETCH = Sketch().eval()


def one_or_many(image: torch.Tensor, shift: torch.Tensor, unused: torch.Tensor) -> dict[str, Any]:
    """Call the network with the shift's axes at the end, where they meet the image's."""
    return SKETCH(image, shift[..., None, None, None], unused)


def worst(values: list[Any], expected: list[np.ndarray]) -> float:
    """Return the largest relative error, infinite where a shape or dtype is another."""
    pairs = [(np.asarray(v), e) for v, e in zip(values, expected, strict=True)]
    alike = all(v.shape == e.shape and v.dtype.kind == e.dtype.kind for v, e in pairs)
    return max(relative_error(v, e) for v, e in pairs) if alike else np.inf


def relative_error(value: np.ndarray, expected: np.ndarray) -> float:
    """Return the norm of the difference over the norm, or the norm where nothing is expected."""
    return float(np.linalg.norm(value - expected) / (np.linalg.norm(expected) or 1.0))


def check_dtypes() -> Iterator[tuple[str, Result]]:
    """A module in bfloat16 takes and gives it, and so does its gradient."""
    linear = torch.nn.Linear(4, 2).to(torch.bfloat16).eval()
    x = jnp.arange(4, dtype=jnp.bfloat16) / 4
    gradient = jax.jit(jax.grad(lambda x: host.torch(linear)(x).astype(jnp.float32).sum()))(x)
    expected = linear.weight.detach().float().sum(0).numpy()
    right = gradient.dtype == jnp.bfloat16 and np.allclose(gradient.astype(jnp.float32), expected, rtol=2**-7)
    yield "host/bfloat16", (float(not right), 0.0)


def check_modes() -> Iterator[tuple[str, Result]]:
    """Gradients do not depend on what the calling thread has turned off."""
    with torch.inference_mode():
        got = ours(IMAGES[0], np.float32(0.25), host.torch(SKETCH))
    yield "host/in inference mode", (worst(got[:-1], reference(IMAGES[0], np.float32(0.25))), SAME)


def check_refusals() -> Iterator[tuple[str, Result]]:
    """Return 0 for each misuse that is refused by its name."""

    def detached(x: torch.Tensor) -> torch.Tensor:
        return x.detach().sum()

    cases = {
        "is in training mode": lambda: host.torch(torch.nn.Dropout()),
        "depends on its inputs for autograd": lambda: jax.grad(host.torch(detached))(jnp.ones(3)),
        "returned a float": lambda: host.torch(lambda x: float(x))(jnp.ones(())),
    }
    for text, call in cases.items():
        yield f"host/{text}", (float(not is_refused(call, text)), 0.0)


def is_refused(call: Callable[[], Any], text: str) -> bool:
    """Whether a call raises Wordlight's error with this text."""
    try:
        call()
    except WordlightError as error:
        return text in str(error)
    return False


def check_clip() -> Iterator[tuple[str, Result]]:
    """The example of docs/host.md: transformers' CLIP as a loss in a JAX step, and the native tower."""
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        write_checkpoint(Path(name))
        clip, native = CLIPModel.from_pretrained(name).eval(), load(name)
    rng = np.random.default_rng(1)
    pixels = rng.standard_normal((2, 3, 32, 32), dtype=np.float32)
    ids = torch.tensor([[1, 7, 9, 63]])

    def clip_loss(pixels: torch.Tensor) -> torch.Tensor:
        return -clip(input_ids=ids, pixel_values=pixels).logits_per_image.mean()

    def native_loss(pixels: jax.Array) -> jax.Array:
        texts = native.encode_tokens(jnp.asarray(ids.numpy()))
        return -native.logits(native.encode_pixels(pixels, layout="CHW"), texts).mean()

    value, gradient = jax.jit(jax.value_and_grad(host.torch(clip_loss)))(pixels)
    wanted, expected = jax.jit(jax.value_and_grad(native_loss))(pixels)
    yield "host/clip loss", (relative_error(np.asarray(value), np.asarray(wanted)), LIMIT)
    yield "host/clip gradient", (relative_error(np.asarray(gradient), np.asarray(expected)), LIMIT)


def write_checkpoint(folder: Path) -> None:
    """Let transformers write a small CLIP whose weights are large enough to matter."""
    layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    words = {"vocab_size": 64, "bos_token_id": 1, "eos_token_id": 63, "pad_token_id": 0}
    config = CLIPConfig(
        vision_config=layers | {"image_size": 32, "patch_size": 8, "initializer_range": 0.2},
        text_config=layers | words | {"initializer_range": 0.2},
        projection_dim=24,
        initializer_factor=4.0,
    )
    torch.manual_seed(0)
    CLIPModel(config).save_pretrained(folder)
    side = {"height": 32, "width": 32}
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=side).save_pretrained(folder)


def check_live() -> dict[str, Result]:
    """Return (error, limit) by name."""
    checks = (check_module, check_dtypes, check_modes, check_refusals, check_clip)
    return {name: result for check in checks for name, result in check()}


if __name__ == "__main__":
    print(json.dumps(check_live(), indent=1))
