"""Images of other sizes, and weights in PyTorch's own files, beside transformers and open_clip."""

import tempfile
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import open_clip
import safetensors.torch
import torch
from transformers import CLIPModel, SiglipModel

from parity.tower_cases import all_cases, relative_error
from wordlight.clip.load import load

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "positions.npz"
LIMIT = 1e-5
GRIDS = (((4, 4), (7, 3)), ((7, 7), (4, 5)), ((5, 5), (5, 8)), ((6, 6), (2, 2)))
Results = dict[str, tuple[float, float]]


def torch_resize(grid: torch.Tensor, size: tuple[int, int], antialias: bool) -> torch.Tensor:
    """Return a grid `[rows, columns, d]` resampled by PyTorch."""
    moved = grid.permute(2, 0, 1)[None]
    resized = torch.nn.functional.interpolate(
        moved, size=size, mode="bicubic", align_corners=False, antialias=antialias
    )
    return resized[0].permute(1, 2, 0)


def golden_arrays() -> dict[str, np.ndarray]:
    """Return grids and what PyTorch makes of them, by their sizes and kernel."""
    arrays = {}
    for old, new in GRIDS:
        draw = torch.Generator().manual_seed(sum(old + new))
        grid = torch.randn(*old, 3, generator=draw, dtype=torch.float64)
        name = f"{old[0]}x{old[1]}-{new[0]}x{new[1]}"
        arrays[name] = grid.float().numpy()
        for kernel, antialias in (("plain", False), ("antialias", True)):
            arrays[f"{name}-{kernel}"] = torch_resize(grid, new, antialias).float().numpy()
    return arrays


def write_golden() -> None:
    """Write what PyTorch's resampling gives."""
    np.savez_compressed(GOLDEN, **golden_arrays())  # type: ignore[arg-type]


def check_golden() -> Results:
    """Compare the committed arrays with what PyTorch gives now."""
    now = golden_arrays()
    with np.load(GOLDEN) as stored:
        error = max(float(np.abs(now[name] - stored[name]).max()) for name in now)
    return {"golden/positions": (error, LIMIT)}


def check_live() -> Results:
    """Return (error, limit) of towers at other image sizes, and of other files."""
    results: Results = {}
    with tempfile.TemporaryDirectory() as name:
        for case in all_cases():
            if case.golden:
                folder = Path(name) / case.name
                folder.mkdir()
                case.write(folder)
                results |= _check_folder(case.name, folder)
    return results


def _check_folder(name: str, folder: Path) -> Results:
    model_is_open = (folder / "open_clip_config.json").is_file()
    if model_is_open and "resnet" not in name:
        return _open_clip_resize(name, folder)
    if name in ("hf-quick-gelu", "hf-siglip"):
        return _hf_resize(name, folder) | _state_dict(name, folder)
    return {}


def _hf_resize(name: str, folder: Path) -> Results:
    kind: Any = SiglipModel if "siglip" in name else CLIPModel
    reference = kind.from_pretrained(folder, dtype=torch.float64).eval()
    results = {}
    for size in ((24, 40), (48, 16), (40, 40)):
        pixels = np.random.default_rng(0).standard_normal((2, *size, 3)).astype(np.float32)
        seen = torch.tensor(pixels).double().permute(0, 3, 1, 2)
        out = reference.get_image_features(pixel_values=seen, interpolate_pos_encoding=True)
        expected = getattr(out, "pooler_output", out)
        expected = torch.nn.functional.normalize(expected, dim=-1).detach().float().numpy()
        value = np.asarray(load(folder, image_size=size).encode_pixels(jnp.asarray(pixels)))
        results[f"{name}/image {size[0]}x{size[1]}"] = (relative_error(value, expected), LIMIT)
    return results


def _open_clip_resize(name: str, folder: Path) -> Results:
    """Compare the resampled embeddings themselves: open_clip resamples while it loads."""
    stored = safetensors.torch.load_file(folder / "open_clip_model.safetensors")
    before = stored["visual.positional_embedding"].double()
    results = {}
    for size in ((24, 40), (48, 16), (40, 40)):
        grid = (size[0] // 8, size[1] // 8)
        visual = type("Visual", (), {"grid_size": grid})()
        state = {"visual.positional_embedding": before.clone()}
        open_clip.model.resize_pos_embed(state, type("Model", (), {"visual": visual})())
        expected = state["visual.positional_embedding"].float().numpy()
        model = load(folder, image_size=size)
        value = np.asarray(model.params["vision"]["positions"])
        results[f"{name}/positions {size[0]}x{size[1]}"] = (relative_error(value, expected), LIMIT)
    return results


def _state_dict(name: str, folder: Path) -> Results:
    """Load the same weights from a PyTorch file, in float32 and bfloat16."""
    file = folder / "model.safetensors"
    state, results = safetensors.torch.load_file(file), {}
    plain = load(folder)
    file.unlink()
    for dtype in (torch.float32, torch.bfloat16):
        torch.save({k: v.to(dtype) for k, v in state.items()}, folder / "pytorch_model.bin")
        model = load(folder)
        expected = plain.params["vision"]["blocks"][0]["mlp"]["up"]["weight"]
        value = np.asarray(model.params["vision"]["blocks"][0]["mlp"]["up"]["weight"])
        limit = 0.0 if dtype == torch.float32 else 2**-8
        results[f"{name}/{dtype} state dict"] = (relative_error(value, np.asarray(expected)), limit)
    return results
