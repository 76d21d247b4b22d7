"""From a checkpoint's configuration file to `ClipConfig`, for the Hugging Face and the OpenCLIP layouts."""

from typing import Any

from wordlight.clip.config import (
    Activation,
    ClipConfig,
    ResNetConfig,
    TextConfig,
    TransformerConfig,
    VitConfig,
)
from wordlight.errors import WordlightError

Json = dict[str, Any]

HF_ACTIVATIONS: dict[str, Activation] = {
    "quick_gelu": "quick_gelu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
# What early configs say although their tokenizer ends with 49407; HF then pools at the largest id.
OLD_END_ID = 2

# Far beyond every published model; a damaged file must not make us plan for more than there is.
MOST = 1_000_000
MOST_LAYERS = 256
MOST_PIXELS = 16_384
MOST_MLP_RATIO = 64

# OpenCLIP options that change what a tower computes, with the values that mean "as usual".
OPEN_VISION_DEFAULTS: Json = {
    "timm_model_name": None,
    "attentional_pool": False,
    "no_ln_pre": False,
    "pos_embed_type": "learnable",
    "final_ln_after_pool": False,
    "pool_type": "tok",
    "ls_init_value": None,
    "act_kwargs": None,
    "norm_kwargs": None,
    "block_type": None,
    "qk_norm": False,
    "scaled_cosine_attn": False,
    "scale_heads": False,
    "scale_attn_inner": False,
    "scale_attn": False,
    "scale_fc": False,
}
OPEN_TEXT_DEFAULTS: Json = {
    "hf_model_name": None,
    "embed_cls": False,
    "no_causal_mask": False,
    "final_ln_after_pool": False,
    "pool_type": "argmax",
    "proj_type": "linear",
    "proj_bias": False,
    "ls_init_value": None,
    "act_kwargs": None,
    "norm_kwargs": None,
    "block_type": None,
    "qk_norm": False,
    "scaled_cosine_attn": False,
    "scale_heads": False,
    "scale_attn_inner": False,
    "scale_attn": False,
    "scale_fc": False,
}


def config_error(key: str, value: Any, wanted: str) -> WordlightError:
    """Return the refusal of one entry of a configuration file."""
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return WordlightError(
        f"The model's configuration says {key} = {shown}, but {wanted}. The file was edited, belongs to "
        "another kind of model, or asks for something Wordlight does not do. Check it against the repository "
        "it came from."
    )


def positive(config: Json, key: str, *, default: Any = None, most: int = MOST) -> int:
    """Return a positive whole number of a configuration file, at most `most`.

    Raises:
        WordlightError: it is something else, or missing without a default.
    """
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise config_error(key, value, f"a whole number from 1 to {most} is needed")
    return value


def _epsilon(config: Json) -> float:
    value = config.get("layer_norm_eps", 1e-5)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise config_error("layer_norm_eps", value, "a number between 0 and 1 is needed")
    return float(value)


def _hf_activation(config: Json) -> Activation:
    name = config.get("hidden_act", "quick_gelu")
    if not isinstance(name, str) or name not in HF_ACTIVATIONS:
        raise config_error("hidden_act", name, f"only {', '.join(HF_ACTIVATIONS)} are known")
    return HF_ACTIVATIONS[name]


def hf_config(config: Json) -> ClipConfig:
    """Read the `config.json` of a CLIP model; missing entries have the defaults of `transformers`.

    Raises:
        WordlightError: another model type, or an entry that cannot be.
    """
    if config.get("model_type") != "clip":
        raise config_error("model_type", config.get("model_type"), "this reader takes 'clip'")
    return ClipConfig(
        embed_dim=positive(config, "projection_dim", default=512),
        vision=_hf_vision(_section(config, "vision_config")),
        text=_hf_text(_section(config, "text_config")),
    )


def _section(config: Json, name: str) -> Json:
    # Early configs repeat a section under `_dict`; `transformers` lets that one win.
    parts = [config.get(name), config.get(f"{name}_dict")]
    for part in parts:
        if part is not None and not isinstance(part, dict):
            raise config_error(name, part, "an object is needed")
    return (parts[0] or {}) | (parts[1] or {})


def _hf_transformer(config: Json, width: int, heads: int) -> TransformerConfig:
    transformer = TransformerConfig(
        width=positive(config, "hidden_size", default=width),
        layers=positive(config, "num_hidden_layers", default=12, most=MOST_LAYERS),
        heads=positive(config, "num_attention_heads", default=heads),
        mlp_width=positive(config, "intermediate_size", default=4 * width),
        activation=_hf_activation(config),
        norm_epsilon=_epsilon(config),
    )
    return _check_heads(transformer)


def _check_heads(config: TransformerConfig) -> TransformerConfig:
    if config.width % config.heads:
        raise config_error("attention heads", config.heads, f"they must divide the width {config.width}")
    return config


def _hf_vision(config: Json) -> VitConfig:
    if config.get("num_channels", 3) != 3:
        raise config_error("num_channels", config["num_channels"], "images have 3 channels")
    size = positive(config, "image_size", default=224, most=MOST_PIXELS)
    return _vit((size, size), positive(config, "patch_size", default=32), _hf_transformer(config, 768, 12))


def _vit(image_size: tuple[int, int], patch_size: int, transformer: TransformerConfig) -> VitConfig:
    if patch_size > min(image_size):
        raise config_error("patch_size", patch_size, f"it must fit in the image size {image_size}")
    return VitConfig(image_size, patch_size, transformer)


def _hf_text(config: Json) -> TextConfig:
    end_id = config.get("eos_token_id", 49407)
    if isinstance(end_id, bool) or not isinstance(end_id, int) or end_id < 0:
        raise config_error("eos_token_id", end_id, "a whole number from 0 is needed")
    return TextConfig(
        vocab_size=positive(config, "vocab_size", default=49408),
        context_length=positive(config, "max_position_embeddings", default=77),
        transformer=_hf_transformer(config, 512, 8),
        end_id=None if end_id == OLD_END_ID else end_id,
    )


def open_clip_config(config: Json) -> ClipConfig:
    """Read the `model_cfg` of an `open_clip_config.json`; missing entries have the defaults of `open_clip`.

    Raises:
        WordlightError: an entry that cannot be, or an option that Wordlight does not do, by name.
    """
    model = config.get("model_cfg")
    if not isinstance(model, dict) or not all(
        isinstance(model.get(k), dict) for k in ("vision_cfg", "text_cfg")
    ):
        raise config_error("model_cfg", type(model).__name__, "it must hold vision_cfg and text_cfg")
    vision, text = model["vision_cfg"], model["text_cfg"]
    _refuse_options("vision_cfg", vision, OPEN_VISION_DEFAULTS)
    _refuse_options("text_cfg", text, OPEN_TEXT_DEFAULTS)
    if "multimodal_cfg" in model or model.get("custom_text"):
        raise config_error("custom_text or multimodal_cfg", True, "only plain CLIP towers are done")
    activation = _open_activation(model)
    return ClipConfig(
        positive(model, "embed_dim"), _open_vision(vision, activation), _open_text(text, activation)
    )


def _open_activation(model: Json) -> Activation:
    quick = model.get("quick_gelu", False)
    if not isinstance(quick, bool):
        raise config_error("quick_gelu", quick, "true or false is needed")
    return "quick_gelu" if quick else "gelu"


def _refuse_options(section: str, config: Json, usual: Json) -> None:
    for key, value in usual.items():
        if config.get(key, value) != value:
            raise config_error(f"{section}.{key}", config[key], f"only {value!r} is done")


def _mlp_width(config: Json, width: int) -> int:
    ratio = config.get("mlp_ratio", 4.0)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= MOST_MLP_RATIO:
        raise config_error("mlp_ratio", ratio, f"a number above 0 and up to {MOST_MLP_RATIO} is needed")
    return positive({"mlp width": int(width * ratio)}, "mlp width", most=MOST * MOST_MLP_RATIO)


def _open_size(config: Json) -> tuple[int, int]:
    size = config.get("image_size", 224)
    pair = list(size) if isinstance(size, list | tuple) else [size, size]
    if len(pair) != 2:
        raise config_error("vision_cfg.image_size", size, "a number or a pair is needed")
    height, width = (positive({"image_size": side}, "image_size", most=MOST_PIXELS) for side in pair)
    return height, width


def _open_vision(config: Json, activation: Activation) -> VitConfig | ResNetConfig:
    image_size, head_width = _open_size(config), positive(config, "head_width", default=64)
    if isinstance(config.get("layers"), list | tuple):
        return _open_resnet(config, image_size, head_width)
    width = positive(config, "width", default=768)
    transformer = TransformerConfig(
        width,
        positive(config, "layers", default=12, most=MOST_LAYERS),
        max(width // head_width, 1),
        _mlp_width(config, width),
        activation,
    )
    return _vit(image_size, positive(config, "patch_size", default=16), _check_heads(transformer))


def _open_resnet(config: Json, image_size: tuple[int, int], head_width: int) -> ResNetConfig:
    blocks = config["layers"]
    if len(blocks) != 4:
        raise config_error("vision_cfg.layers", blocks, "a ResNet has four stages")
    first, second, third, last = (positive({"layers": count}, "layers", most=MOST_LAYERS) for count in blocks)
    if image_size[0] % 32 or image_size[1] % 32:
        raise config_error("vision_cfg.image_size", image_size, "a ResNet takes multiples of 32")
    width = positive(config, "width", default=64)
    heads = width * 32 // head_width
    if heads < 1 or width * 32 % heads:
        raise config_error("vision_cfg.head_width", head_width, f"it must divide the features {width * 32}")
    return ResNetConfig(image_size, (first, second, third, last), width, heads)


def _open_text(config: Json, activation: Activation) -> TextConfig:
    width = positive(config, "width", default=512)
    transformer = TransformerConfig(
        width,
        positive(config, "layers", default=12, most=MOST_LAYERS),
        positive(config, "heads", default=8),
        _mlp_width(config, width),
        activation,
    )
    return TextConfig(
        positive(config, "vocab_size", default=49408),
        positive(config, "context_length", default=77),
        _check_heads(transformer),
    )
