"""Writing a model as a checkpoint folder that this package and the reference programs read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.config_hf import hf_config
from wordlight.clip.config_open_clip import open_clip_config
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.layout_hf import hf_layout
from wordlight.clip.layout_open_clip import open_clip_layout
from wordlight.clip.model import ClipModel
from wordlight.clip.weights import write_params
from wordlight.errors import WordlightError

Json = dict[str, Any]

HF_ACTIVATIONS = {"quick_gelu": "quick_gelu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}
HF_PROCESSORS = {"hf-pil": "CLIPImageProcessor", "hf-torchvision": "CLIPImageProcessorFast"}
PIL_NUMBERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4}


def save_folder(folder: Path, model: ClipModel, *, dtype: Any = np.float32) -> None:
    """Write configuration and weights: Hugging Face layout for a ViT, OpenCLIP layout for a ResNet.

    The OpenCLIP layout does not say whose rounding rules the preprocessing follows; it is read back with
    OpenCLIP's. Neither layout holds `ImageSpec.rounding`, which is the user's choice.

    Args:
        folder: made if missing; tokenizer files are the caller's.
        model: a model with both towers.
        dtype: type of the stored weights.

    Raises:
        WordlightError: the text tower was dropped, or the layout cannot hold the model's configuration.
    """
    config = model.config
    if config.text is None:
        raise WordlightError(
            "This model has no text tower, so it cannot be saved as a checkpoint. It was dropped by "
            "without_text, as guidance does. Save the model as it was loaded or trained."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(config.vision, ResNetConfig):
        _save_open_clip(folder, model, config.vision, config.text, dtype)
    else:
        _save_hf(folder, model, config.vision, config.text, dtype)


def _save_hf(folder: Path, model: ClipModel, vision: VitConfig, text: TextConfig, dtype: Any) -> None:
    config, spec = hf_json(model.config.embed_dim, vision, text), hf_preprocessor_json(model.image_spec)
    _check_kept(model.config, hf_config(config))
    _check_kept(_comparable(model.image_spec), ImageSpec.from_hf(spec, vision.image_size))
    write_params(folder / "model.safetensors", model.params, hf_layout(model.config), dtype=dtype)
    _write_json(folder / "config.json", config)
    _write_json(folder / "preprocessor_config.json", spec)


def _save_open_clip(
    folder: Path, model: ClipModel, vision: ResNetConfig, text: TextConfig, dtype: Any
) -> None:
    spec = open_clip_preprocess_json(model.image_spec)
    config = {"model_cfg": open_clip_json(model.config.embed_dim, vision, text), "preprocess_cfg": spec}
    _check_kept(model.config, open_clip_config(config))
    kept = ImageSpec.from_open_clip(spec, vision.image_size)
    _check_kept(_comparable(replace(model.image_spec, mode="open_clip")), _comparable(kept))
    layout = open_clip_layout(model.config)
    write_params(folder / "open_clip_model.safetensors", model.params, layout, dtype=dtype)
    _write_json(folder / "open_clip_config.json", config)


def _comparable(spec: ImageSpec) -> ImageSpec:
    return replace(spec, resize_to=spec.target, rounding="none")


def _check_kept(wanted: ClipConfig | ImageSpec, kept: ClipConfig | ImageSpec) -> None:
    """Refuse to write what would be read back as something else."""
    if wanted != kept:
        raise WordlightError(
            f"The checkpoint layout cannot hold {wanted}: it would be read back as {kept}. The layouts have "
            "fewer choices than Wordlight's own configuration. Change what differs between the two."
        )


def _write_json(file: Path, value: Json) -> None:
    file.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def hf_json(embed_dim: int, vision: VitConfig, text: TextConfig) -> Json:
    """Return the `config.json` of a ViT model."""
    vision_json = _hf_transformer(vision.transformer) | {
        "model_type": "clip_vision_model",
        "image_size": vision.image_size[0],
        "patch_size": vision.patch_size,
        "projection_dim": embed_dim,
    }
    return {
        "architectures": ["CLIPModel"],
        "model_type": "clip",
        "projection_dim": embed_dim,
        "vision_config": vision_json,
        "text_config": _hf_text(text, embed_dim),
    }


def _hf_transformer(config: TransformerConfig) -> Json:
    return {
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.mlp_width,
        "hidden_act": HF_ACTIVATIONS[config.activation],
        "layer_norm_eps": config.norm_epsilon,
    }


def _hf_text(config: TextConfig, embed_dim: int) -> Json:
    end_id = 2 if config.end_id is None else config.end_id
    return _hf_transformer(config.transformer) | {
        "model_type": "clip_text_model",
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "projection_dim": embed_dim,
        "bos_token_id": max(end_id - 1, 0),
        "eos_token_id": end_id,
        "pad_token_id": 0,
    }


def hf_preprocessor_json(spec: ImageSpec) -> Json:
    """Return the `preprocessor_config.json` that asks for a preprocessing."""
    height, width = spec.target
    sizes = {
        "shortest": {"shortest_edge": height},
        "longest": {"max_height": height, "max_width": width},
    }
    return {
        "image_processor_type": HF_PROCESSORS.get(spec.mode, "CLIPImageProcessor"),
        "do_convert_rgb": True,
        "do_resize": spec.resize != "none",
        "size": sizes.get(spec.resize, {"height": height, "width": width}),
        "resample": PIL_NUMBERS[spec.interpolation],
        "do_center_crop": spec.crop,
        "crop_size": {"height": spec.height, "width": spec.width},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(spec.mean),
        "image_std": list(spec.std),
    }


def open_clip_json(embed_dim: int, vision: ResNetConfig, text: TextConfig) -> Json:
    """Return the `model_cfg` of a ResNet model's `open_clip_config.json`."""
    height, width = vision.image_size
    vision_json = {
        "image_size": height if height == width else [height, width],
        "layers": list(vision.blocks),
        "width": vision.width,
        "head_width": vision.features // vision.heads,
        "patch_size": None,
    }
    text_json = {
        "context_length": text.context_length,
        "vocab_size": text.vocab_size,
        "width": text.transformer.width,
        "heads": text.transformer.heads,
        "layers": text.transformer.layers,
        "mlp_ratio": _mlp_ratio(text.transformer),
    }
    quick = text.transformer.activation == "quick_gelu"
    return {"embed_dim": embed_dim, "quick_gelu": quick, "vision_cfg": vision_json, "text_cfg": text_json}


def _mlp_ratio(config: TransformerConfig) -> float:
    """Return the ratio that `int(width * ratio)` turns back into the MLP's width."""
    ratio = config.mlp_width / config.width
    exact = int(config.width * ratio) == config.mlp_width
    return ratio if exact else (config.mlp_width + 0.5) / config.width


def open_clip_preprocess_json(spec: ImageSpec) -> Json:
    """Return the `preprocess_cfg` that asks for a preprocessing."""
    return {
        "size": list(spec.size),
        "mode": "RGB",
        "mean": list(spec.mean),
        "std": list(spec.std),
        "interpolation": spec.interpolation,
        "resize_mode": spec.resize,
        "fill_color": 255 * spec.fill,
    }
