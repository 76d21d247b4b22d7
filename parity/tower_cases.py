"""Towers beside transformers and open_clip: embeddings, logits and the gradient of a logit at the pixels.

Every case is a checkpoint of random weights that the reference program itself wrote. The reference program
and Wordlight then read the same folder and are given the same pixels and ids. Small checkpoints and their
expected outputs become golden files, which `tests/test_towers.py` reads without PyTorch.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import open_clip
import safetensors.torch
import torch
from open_clip.coca_model import CoCa
from transformers import (
    AutoModel,
    CLIPConfig,
    CLIPImageProcessor,
    CLIPModel,
    SiglipConfig,
    SiglipImageProcessor,
    SiglipModel,
)
from transformers.utils import logging

from wordlight.clip.load import load
from wordlight.clip.model import ClipModel
from wordlight.clip.save import save_folder

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "towers"
LIMIT = 1e-5  # norm of the difference over the norm
SAME = 1e-5  # between two runs of a reference program on different machines
OUTPUTS = ("image_embeds", "text_embeds", "logits", "gradient")
IMAGES = 2
Arrays = dict[str, np.ndarray]


TINY_VISION = {"hidden_size": 32, "intermediate_size": 48, "image_size": 24, "patch_size": 8}
TINY_TEXT = {"hidden_size": 16, "intermediate_size": 40, "vocab_size": 64, "eos_token_id": 63}
TINY_TEXT |= {"bos_token_id": 1, "pad_token_id": 0}


class Case(NamedTuple):
    """A checkpoint: what writes it into a folder, and whether it is small enough to be a golden file."""

    name: str
    write: Callable[[Path], None]
    golden: bool = False


def all_cases() -> list[Case]:
    """Return every case, the smallest first."""
    bfloat = {"dtype": torch.bfloat16, "max_shard_size": "40KB"}
    small = {"hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 4}
    words = {"hidden_size": 48, "intermediate_size": 192, "num_attention_heads": 4}
    return [
        Case("hf-quick-gelu", partial(write_hf, TINY_VISION, TINY_TEXT), golden=True),
        Case(
            "hf-gelu-sharded-bfloat16",
            partial(
                write_hf,
                TINY_VISION | {"hidden_act": "gelu"},
                TINY_TEXT | {"hidden_act": "gelu", "eos_token_id": 2},
                embed_dim=20,
                **bfloat,
            ),
            golden=True,
        ),
        Case("open-clip-gelu", partial(write_open_clip, tiny_open_vit()), golden=True),
        Case("open-clip-resnet", partial(write_open_clip, tiny_resnet(2)), golden=True),
        Case("hf-siglip", write_siglip, golden=True),
        Case("open-clip-clipa", partial(write_open_clip, clipa()), golden=True),
        Case("open-clip-scaled", partial(write_open_clip, scaled())),
        Case("open-clip-coca", partial(write_open_clip, coca(32)), golden=True),
        Case("open-clip-coca-same-width", partial(write_open_clip, coca(24))),
        Case("open-clip-quick-gelu", partial(write_open_clip, tiny_open_vit() | {"quick_gelu": True})),
        Case("open-clip-resnet-wide", partial(write_open_clip, tiny_resnet(16))),
        Case("hf-patch-32", partial(write_hf, small | {"image_size": 96, "patch_size": 32}, words)),
        Case("hf-patch-16", partial(write_hf, small | {"image_size": 96, "patch_size": 16}, words)),
        Case("hf-patch-14-of-100", partial(write_hf, small | {"image_size": 100, "patch_size": 14}, words)),
        Case(
            "hf-tanh-gelu",
            partial(write_hf, small | {"image_size": 32, "hidden_act": "gelu_pytorch_tanh"}, words),
        ),
        Case("hf-vit-b-32", partial(write_hf, {"num_hidden_layers": 12}, {"num_hidden_layers": 12})),
    ]


def tiny_open_vit() -> dict[str, Any]:
    """Return the `model_cfg` of a small open_clip ViT, its text tower of another width."""
    vision = {"layers": 2, "width": 32, "head_width": 16, "mlp_ratio": 1.5, "patch_size": 8, "image_size": 24}
    text = {"layers": 2, "width": 16, "heads": 2, "mlp_ratio": 2.5, "vocab_size": 64, "context_length": 12}
    return {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text}


def tiny_resnet(width: int) -> dict[str, Any]:
    """Return the `model_cfg` of a small ModifiedResNet."""
    vision = {"layers": [1, 2, 1, 1], "width": width, "head_width": width * 8, "image_size": 64}
    return tiny_open_vit() | {"vision_cfg": vision | {"patch_size": None}}


def write_hf(
    vision: dict[str, Any],
    text: dict[str, Any],
    folder: Path,
    *,
    embed_dim: int = 24,
    dtype: torch.dtype = torch.float32,
    max_shard_size: str = "5GB",
) -> None:
    """Let transformers write a CLIP of random weights, with its preprocessing."""
    config = CLIPConfig(
        vision_config={"num_hidden_layers": 2, "num_attention_heads": 2} | vision,
        text_config={"num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 12} | text,
        projection_dim=embed_dim,
    )
    model = randomise(CLIPModel(config))
    model.to(dtype).save_pretrained(folder, max_shard_size=max_shard_size)
    side = config.vision_config.image_size
    size = {"size": {"shortest_edge": side}, "crop_size": {"height": side, "width": side}}
    CLIPImageProcessor(**size).save_pretrained(folder)


def write_siglip(folder: Path) -> None:
    """Let transformers write a small SigLIP of random weights, with its preprocessing."""
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 40}
    config = SiglipConfig(
        vision_config=sizes | {"image_size": 24, "patch_size": 8},
        text_config=sizes | {"vocab_size": 64, "max_position_embeddings": 12, "projection_size": 32},
    )
    model: Any = randomise(SiglipModel(config))
    model.save_pretrained(folder)
    SiglipImageProcessor(size={"height": 24, "width": 24}).save_pretrained(folder)


def clipa() -> dict[str, Any]:
    """Return the `model_cfg` of a small CLIPA: mean of the patches, text seen both ways."""
    config = tiny_open_vit()
    config["vision_cfg"] |= {"no_ln_pre": True, "pool_type": "avg", "final_ln_after_pool": True}
    config["text_cfg"] |= {"pool_type": "last", "no_causal_mask": True}
    return config


def scaled() -> dict[str, Any]:
    """Return the `model_cfg` of a small ViT with layer scale and the rarer options of its text tower."""
    config = tiny_open_vit()
    config["vision_cfg"] |= {"ls_init_value": 0.1, "norm_kwargs": {"eps": 1e-3}, "pool_type": "avg"}
    config["text_cfg"] |= {"pool_type": "eos", "eos_id": 63, "proj_bias": True, "ls_init_value": 0.1}
    config["text_cfg"] |= {"act_kwargs": {"approximate": "tanh"}, "norm_kwargs": {"eps": 1e-3}}
    return config


def coca(width: int) -> dict[str, Any]:
    """Return the `model_cfg` of a small CoCa; its pooling differs where the width is the embedding's."""
    config = tiny_open_vit()
    config["vision_cfg"] |= {"width": width, "head_width": 8, "attentional_pool": True}
    config["vision_cfg"] |= {"attn_pooler_heads": 4, "attn_pooler_queries": 5, "output_tokens": True}
    config["text_cfg"] |= {"embed_cls": True, "output_tokens": True}
    decoder = {"width": 16, "heads": 2, "layers": 1, "context_length": 12, "vocab_size": 64}
    return config | {"multimodal_cfg": decoder, "custom_text": True}


def write_open_clip(model_cfg: dict[str, Any], folder: Path) -> None:
    """Let open_clip write a model of random weights in its own layout."""
    kind: Any = open_clip.CustomTextCLIP if model_cfg.get("custom_text") else open_clip.CLIP
    kind = CoCa if "multimodal_cfg" in model_cfg else kind
    model = randomise(kind(**{name: value for name, value in model_cfg.items() if name != "custom_text"}))
    safetensors.torch.save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    config = {
        "model_cfg": model_cfg,
        "preprocess_cfg": {"interpolation": "bicubic", "resize_mode": "shortest"},
    }
    (folder / "open_clip_config.json").write_text(json.dumps(config, indent=2) + "\n")


def randomise(model: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Give every weight a value that matters.

    The programs' own initial values are so small, and their norms and statistics so plain, that a tower that
    skips a bias or swaps two norms would hardly show.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and "logit_" not in name:
            noise = torch.randn(tensor.shape, generator=generator)
            tensor.copy_(_spread(name, noise))
    return model.eval()


def _spread(name: str, noise: torch.Tensor) -> torch.Tensor:
    """Return standard normal noise at the scale and place that suits the tensor of this name."""
    if name.endswith("running_var"):
        return 0.5 + noise.abs()
    if noise.ndim >= 2 and "embedding" not in name.replace("patch_embedding", ""):
        # Convolutions have rectifiers behind them, which halve what passes, and biases that would drown it.
        gain = 3.0 if noise.ndim == 4 else 1.5
        return noise * (gain / noise[0].numel()) ** 0.5
    is_norm_scale = noise.ndim == 1 and name.endswith("weight")
    return 1 + 0.2 * noise if is_norm_scale else 0.3 * noise


def inputs(model: ClipModel, seed: int = 1) -> Arrays:
    """Return pixels, `[b, height, width, 3]`, and ids that end at different places, with their mask."""
    rng = np.random.default_rng(seed)
    text = model.config.text
    if text is None:
        raise RuntimeError("a checkpoint without a text tower")
    full = text.pooling in ("last", "class")
    length, vocab = text.context_length if full else min(text.context_length, 12), text.vocab_size
    end = vocab - 1 if text.end_id is None else text.end_id
    # An end below the words (2, as BERT's vocabularies have it) leaves all of them free.
    above = min(vocab, end) - 1 if end > 3 else vocab
    ids = rng.integers(3, above, (3, length))
    stops = np.array([length - 1, 4, 7])
    after = np.arange(length)[None] >= stops[:, None]
    mask = (np.arange(length)[None] <= stops[:, None]).astype(np.int32)
    # Noise alone has the same mean everywhere, and pooling would make all images alike.
    colours = rng.standard_normal((IMAGES, 1, 1, 3))
    pixels = colours + rng.standard_normal((IMAGES, *model.config.vision.image_size, 3))
    return {
        "pixels": pixels.astype(np.float32),
        "ids": np.where(after, text.pad_id if full else end, ids).astype(np.int32),
        "mask": mask if text.causal else np.ones_like(mask),
    }


def reference(folder: Path, given: Arrays, *, dtype: torch.dtype = torch.float64) -> Arrays:
    """Return what the program that wrote a folder computes from it, in float64 unless another type is asked
    for, rounded to float32.

    In float32 PyTorch's own rounding reaches 1.7e-5 in the pixel gradient of a wide ResNet, above what is
    asked of ours.
    """
    pixels = torch.tensor(given["pixels"]).to(dtype).permute(0, 3, 1, 2).requires_grad_()
    ids, mask = torch.tensor(given["ids"]).long(), torch.tensor(given["mask"])
    is_open_clip = (folder / "open_clip_config.json").is_file()
    run = _run_open_clip if is_open_clip else _run_hf
    image_embeds, text_embeds, logits = run(folder, pixels, ids, mask)
    logits[0, 0].backward()
    if pixels.grad is None:
        raise RuntimeError("no gradient reached the pixels")
    gradient = pixels.grad.permute(0, 2, 3, 1)
    values = (image_embeds, text_embeds, logits, gradient)
    return {name: value.detach().float().numpy() for name, value in zip(OUTPUTS, values, strict=True)}


def _run_hf(folder: Path, pixels: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> tuple[Any, ...]:
    logging.disable_progress_bar()
    model = AutoModel.from_pretrained(folder, dtype=pixels.dtype)
    model.eval()
    out = model(input_ids=ids, attention_mask=mask, pixel_values=pixels)
    return out.image_embeds, out.text_embeds, out.logits_per_image


def _run_open_clip(
    folder: Path, pixels: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor
) -> tuple[Any, ...]:
    del mask  # open_clip has none
    model: Any = open_clip.create_model(f"local-dir:{folder}").to(pixels.dtype)
    model.eval()
    image_embeds = model.encode_image(pixels, normalize=True)
    text_embeds = model.encode_text(ids, normalize=True)
    logits = model.logit_scale.exp() * image_embeds @ text_embeds.T
    bias = getattr(model, "logit_bias", None)
    return image_embeds, text_embeds, logits if bias is None else logits + bias


@jax.jit
def _run(model: ClipModel, pixels: jax.Array, ids: jax.Array, mask: jax.Array) -> tuple[jax.Array, ...]:
    def logit(pixels: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        image_embeds, text_embeds = model.encode_pixels(pixels), model.encode_tokens(ids, mask)
        logits = model.logits(image_embeds, text_embeds)
        return logits[0, 0], (image_embeds, text_embeds, logits)

    gradient, values = jax.grad(logit, has_aux=True)(pixels)
    return *values, gradient


def ours(model: ClipModel, given: Arrays) -> Arrays:
    """Return the same from Wordlight."""
    values = _run(model, *(jnp.asarray(given[name]) for name in ("pixels", "ids", "mask")))
    return {name: np.asarray(value) for name, value in zip(OUTPUTS, values, strict=True)}


def relative_error(value: np.ndarray, expected: np.ndarray) -> float:
    """Return the norm of the difference over the norm."""
    return float(np.linalg.norm(value - expected) / np.linalg.norm(expected))


def check_case(case: Case) -> Iterator[tuple[str, tuple[float, float]]]:
    """Compare one checkpoint, then the one that Wordlight writes from it."""
    with tempfile.TemporaryDirectory() as name:
        folder, again = Path(name) / "theirs", Path(name) / "ours"
        folder.mkdir()
        case.write(folder)
        model = load(folder)
        given = inputs(model)
        expected, values = reference(folder, given), ours(model, given)
        for key in OUTPUTS:
            error = relative_error(values[key], expected[key])
            yield f"{case.name}/{key}", (error, LIMIT)
        spread = np.linalg.norm(expected["image_embeds"][0] - expected["image_embeds"][1])
        yield f"{case.name}/alike", (float(spread < 0.05), 0.0)
        if _can_be_written(folder):
            save_folder(again, model)
            read = reference(again, given)
            errors = [relative_error(read[key], expected[key]) for key in OUTPUTS]
            yield f"{case.name}/written by us", (max(errors), SAME)


def _can_be_written(folder: Path) -> bool:
    """Whether Wordlight writes this kind of model in the layout it came in."""
    file = folder / "open_clip_config.json"
    if not file.is_file():
        return json.loads((folder / "config.json").read_text())["model_type"] == "clip"
    return isinstance(json.loads(file.read_text())["model_cfg"]["vision_cfg"]["layers"], list)


def check_live() -> dict[str, tuple[float, float]]:
    """Return (error, limit) of every output of every case."""
    return {name: result for case in all_cases() for name, result in check_case(case)}


def golden_arrays(folder: Path) -> Arrays:
    """Return inputs and expected outputs for a checkpoint."""
    given = inputs(load(folder))
    return given | reference(folder, given)


def write_golden() -> None:
    """Write the small checkpoints and what the reference programs make of them."""
    shutil.rmtree(GOLDEN, ignore_errors=True)
    for case in (c for c in all_cases() if c.golden):
        folder = GOLDEN / case.name
        folder.mkdir(parents=True)
        case.write(folder)
        np.savez_compressed(folder / "expected.npz", **golden_arrays(folder))  # type: ignore[arg-type]


def check_golden() -> dict[str, tuple[float, float]]:
    """Compare the committed outputs with what the reference programs make of the committed checkpoints."""
    results = {}
    for case in (c for c in all_cases() if c.golden):
        folder = GOLDEN / case.name
        with np.load(folder / "expected.npz") as stored:
            now = golden_arrays(folder)
            errors = [relative_error(now[key], stored[key]) for key in now]
        results[f"golden/{case.name}"] = (max(errors), SAME)
    return results
