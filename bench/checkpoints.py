"""Checkpoints of random weights and true architecture, written by transformers."""

from pathlib import Path

import torch  # pyright: ignore[reportMissingImports]
from parity.text_cases import reference
from transformers import (  # pyright: ignore[reportMissingImports]
    CLIPConfig,
    CLIPImageProcessor,
    CLIPModel,
)

LARGE_VISION = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24}
LARGE_VISION |= {"num_attention_heads": 16, "patch_size": 14}
LARGE_TEXT = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12}


def vit_b_32(folder: Path) -> Path:
    """Write a ViT-B/32 with OpenAI's vocabulary."""
    return _write(folder, CLIPConfig())


def vit_l_14(folder: Path) -> Path:
    """Write a ViT-L/14 with OpenAI's vocabulary, 1.7 GB."""
    return _write(folder, CLIPConfig(vision_config=LARGE_VISION, text_config=LARGE_TEXT, projection_dim=768))


def _write(folder: Path, config: CLIPConfig) -> Path:
    if not (folder / "model.safetensors").is_file():
        torch.manual_seed(0)
        CLIPModel(config).save_pretrained(folder)
        CLIPImageProcessor().save_pretrained(folder)
        reference().save_pretrained(folder)
    return folder
