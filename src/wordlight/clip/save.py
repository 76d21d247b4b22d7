"""Writing a model as a checkpoint folder that this package and the reference programs read."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.layouts import hf_layout, open_clip_layout
from wordlight.clip.model import ClipModel
from wordlight.clip.weights import write_params

HF_NAMES = {"quick_gelu": "quick_gelu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}


def save_folder(folder: Path, model: ClipModel, *, dtype: Any = np.float32) -> None:
    """Write configuration and weights: Hugging Face layout for a ViT, OpenCLIP layout for a ResNet.

    Args:
        folder: made if missing; tokenizer files are the caller's.
        model: a model with both towers.
        dtype: type of the stored weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model.config.vision, ResNetConfig):
        _write_json(folder / "open_clip_config.json", open_clip_json(model))
        file, layout = folder / "open_clip_model.safetensors", open_clip_layout(model.config)
    else:
        _write_json(folder / "config.json", hf_json(model.config))
        _write_json(folder / "preprocessor_config.json", hf_preprocessor_json(model))
        file, layout = folder / "model.safetensors", hf_layout(model.config)
    write_params(file, model.params, layout, dtype=dtype)


def _write_json(file: Path, value: dict[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _hf_transformer(config: TransformerConfig) -> dict[str, Any]:
    return {
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.mlp_width,
        "hidden_act": HF_NAMES[config.activation],
        "layer_norm_eps": config.norm_epsilon,
    }


def hf_json(config: ClipConfig) -> dict[str, Any]:
    """Return the `config.json` of a ViT model."""
    assert isinstance(config.vision, VitConfig)
    assert config.text is not None
    vision = _hf_transformer(config.vision.transformer) | {
        "model_type": "clip_vision_model",
        "image_size": config.vision.image_size[0],
        "patch_size": config.vision.patch_size,
        "projection_dim": config.embed_dim,
    }
    return {
        "architectures": ["CLIPModel"],
        "model_type": "clip",
        "projection_dim": config.embed_dim,
        "vision_config": vision,
        "text_config": _hf_text(config.text, config.embed_dim),
    }


def _hf_text(config: TextConfig, embed_dim: int) -> dict[str, Any]:
    end_id = 2 if config.end_id is None else config.end_id
    return _hf_transformer(config.transformer) | {
        "model_type": "clip_text_model",
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "projection_dim": embed_dim,
        "bos_token_id": end_id - 1,
        "eos_token_id": end_id,
        "pad_token_id": 0,
    }


def hf_preprocessor_json(model: ClipModel) -> dict[str, Any]:
    """Return the `preprocessor_config.json` of a model that resizes the shortest edge and crops."""
    spec = model.image_spec
    return {
        "image_processor_type": "CLIPImageProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": spec.size[0]},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": spec.size[0], "width": spec.size[1]},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(spec.mean),
        "image_std": list(spec.std),
    }


def open_clip_json(model: ClipModel) -> dict[str, Any]:
    """Return the `open_clip_config.json` of a ResNet model with exact GELU in its text tower."""
    vision, text = model.config.vision, model.config.text
    assert isinstance(vision, ResNetConfig)
    assert text is not None
    vision_json = {
        "image_size": vision.image_size[0],
        "layers": list(vision.blocks),
        "width": vision.width,
        "head_width": vision.features // vision.heads,
        "patch_size": None,
    }
    transformer = text.transformer
    text_json = {
        "context_length": text.context_length,
        "vocab_size": text.vocab_size,
        "width": transformer.width,
        "heads": transformer.heads,
        "layers": transformer.layers,
        "mlp_ratio": transformer.mlp_width / transformer.width,
    }
    model_json = {"embed_dim": model.config.embed_dim, "vision_cfg": vision_json, "text_cfg": text_json}
    model_json["quick_gelu"] = transformer.activation == "quick_gelu"
    spec = model.image_spec
    return {"model_cfg": model_json, "preprocess_cfg": {"mean": list(spec.mean), "std": list(spec.std)}}
