"""From the `config.json` of `transformers` to `ClipConfig`: CLIP, SigLIP, and SigLIP 2 of fixed
resolution, whose files call themselves SigLIP.
"""

from dataclasses import dataclass

from wordlight.clip.config import (
    Activation,
    ClipConfig,
    TextConfig,
    TransformerConfig,
    VitConfig,
    siglip_text,
    siglip_vision,
)
from wordlight.clip.config_values import (
    MOST_LAYERS,
    MOST_PIXELS,
    Json,
    check_heads,
    check_patch,
    config_error,
    fraction,
    positive,
    square,
    token_id,
)

HF_ACTIVATIONS: dict[str, Activation] = {
    "quick_gelu": "quick_gelu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
# What early configs say although their tokenizer ends with 49407; HF then pools at the largest id.
OLD_END_ID = 2


@dataclass(frozen=True)
class Defaults:
    """What `transformers` takes for entries that a file leaves out."""

    activation: str
    epsilon: float


CLIP = Defaults("quick_gelu", 1e-5)
SIGLIP = Defaults("gelu_pytorch_tanh", 1e-6)


def hf_config(config: Json) -> ClipConfig:
    """Read a `config.json`; missing entries have the defaults of `transformers`.

    Raises:
        WordlightError: another model type, or an entry that cannot be.
    """
    kind = config.get("model_type")
    if kind == "clip":
        return _clip(config)
    if kind == "siglip":
        return _siglip(config)
    if kind == "siglip2":
        raise config_error("model_type", kind, "SigLIP 2 with patches of variable number is not done")
    raise config_error("model_type", kind, "'clip' and 'siglip' are done")


def _clip(config: Json) -> ClipConfig:
    vision, text = _clip_section(config, "vision_config"), _clip_section(config, "text_config")
    end_id = token_id(text, "eos_token_id", default=49407)
    return ClipConfig(
        embed_dim=positive(config, "projection_dim", default=512),
        vision=VitConfig(*_patches(vision, 32), _transformer(vision, 768, 12, CLIP)),
        text=TextConfig(
            vocab_size=positive(text, "vocab_size", default=49408),
            context_length=positive(text, "max_position_embeddings", default=77),
            transformer=_transformer(text, 512, 8, CLIP),
            end_id=None if end_id == OLD_END_ID else end_id,
        ),
    )


def _siglip(config: Json) -> ClipConfig:
    vision, text = _section(config, "vision_config"), _section(config, "text_config")
    if vision.get("vision_use_head", True) is not True:
        raise config_error(
            "vision_config.vision_use_head", vision["vision_use_head"], "its pooling head is needed"
        )
    tower = siglip_vision(*_patches(vision, 16), _transformer(vision, 768, 12, SIGLIP))
    width = positive(text, "hidden_size", default=768)
    projected = text.get("projection_size")
    embed_dim = width if projected is None else positive(text, "projection_size")
    if embed_dim != tower.transformer.width:
        raise config_error(
            "text_config.projection_size", embed_dim, f"images have {tower.transformer.width} features"
        )
    return ClipConfig(embed_dim, tower, _siglip_text(text), sigmoid=True)


def _siglip_text(config: Json) -> TextConfig:
    return siglip_text(
        positive(config, "vocab_size", default=32000),
        positive(config, "max_position_embeddings", default=64),
        _transformer(config, 768, 12, SIGLIP),
        pad_id=token_id(config, "pad_token_id", default=1),
    )


def _clip_section(config: Json, name: str) -> Json:
    # Early configs repeat a section under `_dict`. For CLIP, `transformers` lets that one win, with its
    # defaults for what it leaves out; for SigLIP it does not look at it.
    repeated = _section(config, f"{name}_dict")
    return repeated if config.get(f"{name}_dict") is not None else _section(config, name)


def _section(config: Json, name: str) -> Json:
    part = config.get(name)
    if part is not None and not isinstance(part, dict):
        raise config_error(name, part, "an object is needed")
    return part or {}


def _transformer(config: Json, width: int, heads: int, defaults: Defaults) -> TransformerConfig:
    transformer = TransformerConfig(
        width=positive(config, "hidden_size", default=width),
        layers=positive(config, "num_hidden_layers", default=12, most=MOST_LAYERS),
        heads=positive(config, "num_attention_heads", default=heads),
        mlp_width=positive(config, "intermediate_size", default=4 * width),
        activation=_activation(config, defaults.activation),
        norm_epsilon=fraction(config, "layer_norm_eps", default=defaults.epsilon),
    )
    return check_heads(transformer)


def _activation(config: Json, default: str) -> Activation:
    name = config.get("hidden_act", default)
    if not isinstance(name, str) or name not in HF_ACTIVATIONS:
        raise config_error("hidden_act", name, f"only {', '.join(HF_ACTIVATIONS)} are known")
    return HF_ACTIVATIONS[name]


def _patches(config: Json, patch_size: int) -> tuple[tuple[int, int], int]:
    if config.get("num_channels", 3) != 3:
        raise config_error("num_channels", config["num_channels"], "images have 3 channels")
    side = square(config, "image_size", default=224, most=MOST_PIXELS)
    patch = square(config, "patch_size", default=patch_size, most=MOST_PIXELS)
    return (side, side), check_patch(patch, (side, side))
