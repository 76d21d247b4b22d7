"""From an `open_clip_config.json` to `ClipConfig`."""

from typing import Any

from wordlight.clip.config import (
    Activation,
    ClipConfig,
    ImagePooling,
    ResNetConfig,
    TextConfig,
    TextPooling,
    TransformerConfig,
    VitConfig,
)
from wordlight.clip.config_timm import timm_vision
from wordlight.clip.config_values import (
    MOST,
    MOST_LAYERS,
    MOST_PIXELS,
    Json,
    check_heads,
    check_patch,
    choice,
    config_error,
    flag,
    fraction,
    positive,
    square,
    token_id,
)
from wordlight.clip.text_cleaning import Cleaning
from wordlight.clip.tokenizer import TextRules

MOST_MLP_RATIO = 64

# Options that change what a tower computes, with the values that mean "as usual".
BLOCK_DEFAULTS: Json = {
    "block_type": None,
    "qk_norm": False,
    "scaled_cosine_attn": False,
    "scale_heads": False,
    "scale_attn_inner": False,
    "scale_attn": False,
    "scale_fc": False,
}
VISION_DEFAULTS: Json = BLOCK_DEFAULTS | {"pos_embed_type": "learnable"}
TEXT_DEFAULTS: Json = BLOCK_DEFAULTS | {"hf_model_name": None, "final_ln_after_pool": False}
# Entries that are read, or that change nothing in a trained model's values.
VISION_KNOWN = {*VISION_DEFAULTS, "layers", "width", "head_width", "mlp_ratio", "patch_size", "image_size"}
VISION_KNOWN |= {"ls_init_value", "patch_dropout", "attentional_pool", "attn_pooler_queries"}
VISION_KNOWN |= {"attn_pooler_heads", "no_ln_pre", "final_ln_after_pool", "pool_type", "output_tokens"}
VISION_KNOWN |= {"act_kwargs", "norm_kwargs", "timm_model_name", "timm_model_pretrained", "timm_pool"}
VISION_KNOWN |= {"timm_proj", "timm_proj_bias", "timm_drop", "timm_drop_path"}
TEXT_KNOWN = {*TEXT_DEFAULTS, "context_length", "vocab_size", "hf_tokenizer_name", "tokenizer_mode"}
TEXT_KNOWN |= {"tokenizer_kwargs", "width", "heads", "layers", "mlp_ratio", "ls_init_value", "embed_cls"}
TEXT_KNOWN |= {"pad_id", "eos_id", "no_causal_mask", "pool_type", "proj_bias", "proj_type", "output_tokens"}
TEXT_KNOWN |= {"act_kwargs", "norm_kwargs", "hf_model_pretrained", "hf_proj_type", "hf_pooler_type"}
MODEL_KNOWN = {"embed_dim", "vision_cfg", "text_cfg", "multimodal_cfg", "quick_gelu", "custom_text"}
MODEL_KNOWN |= {"init_logit_scale", "init_logit_bias", "nonscalar_logit_scale", "cast_dtype", "output_dict"}
MODEL_KNOWN |= {"pad_id"}
TEXT_POOLINGS: dict[str, TextPooling] = {"argmax": "end", "eos": "end", "last": "last", "first": "first"}


def open_clip_config(config: Json) -> ClipConfig:
    """Read the `model_cfg` of an `open_clip_config.json`; missing entries have the defaults of `open_clip`.

    Of a CoCa model, the two contrastive towers are read, not the captioning decoder.

    Raises:
        WordlightError: an entry that cannot be, or an option that Wordlight does not do, by name.
    """
    model = config.get("model_cfg")
    if not isinstance(model, dict) or not all(
        isinstance(model.get(k), dict) for k in ("vision_cfg", "text_cfg")
    ):
        raise config_error("model_cfg", type(model).__name__, "it must hold vision_cfg and text_cfg")
    vision, text = model["vision_cfg"], model["text_cfg"]
    _refuse_options("text_cfg", text, TEXT_DEFAULTS)
    _refuse_unknown("model_cfg", model, MODEL_KNOWN)
    _refuse_unknown("vision_cfg", vision, VISION_KNOWN)
    _refuse_unknown("text_cfg", text, TEXT_KNOWN)
    activation: Activation = "quick_gelu" if flag(model, "quick_gelu") else "gelu"
    embed_dim = positive(model, "embed_dim")
    return ClipConfig(
        embed_dim,
        _vision(vision, activation, embed_dim),
        _text(text, activation),
        sigmoid=model.get("init_logit_bias") is not None,
    )


def open_clip_text_rules(config: Json) -> TextRules:
    """Return what an `open_clip_config.json` says about text, with the defaults of `open_clip`.

    Raises:
        WordlightError: an option of the tokenizer that Wordlight does not do.
    """
    text = config["model_cfg"]["text_cfg"]
    if text.get("tokenizer_mode"):
        raise config_error("text_cfg.tokenizer_mode", text["tokenizer_mode"], "such a tokenizer is not done")
    options = _options(text, "tokenizer_kwargs", ("clean", "strip_sep_token", "context_length"))
    own = not text.get("hf_tokenizer_name")  # open_clip then tokenises itself, whatever files lie beside it
    done = ("lower", "canonicalize") if own else ("lower", "whitespace", "canonicalize")
    cleaning: Any = choice(options, "clean", done, default="lower" if own else "whitespace")
    named: Cleaning = "canonical" if cleaning == "canonicalize" else cleaning
    return TextRules(named, drop_separator=flag(options, "strip_sep_token"), pad_id=0 if own else None)


def _refuse_unknown(section: str, config: Json, known: set[str]) -> None:
    for key in sorted(set(config) - known):
        raise config_error(f"{section}.{key}", config[key], "no such entry is known")


def _refuse_options(section: str, config: Json, usual: Json) -> None:
    for key, value in usual.items():
        if config.get(key, value) != value:
            raise config_error(f"{section}.{key}", config[key], f"only {value!r} is done")


def _vision(config: Json, activation: Activation, embed_dim: int) -> VitConfig | ResNetConfig:
    if config.get("timm_model_name") is not None:
        return timm_vision(config, embed_dim)
    _refuse_options("vision_cfg", config, VISION_DEFAULTS)
    image_size = _size(config)
    if isinstance(config.get("layers"), list | tuple):
        return _resnet(config, image_size, positive(config, "head_width", default=64))
    return _vit(config, image_size, activation, embed_dim)


def _size(config: Json) -> tuple[int, int]:
    size = config.get("image_size", 224)
    pair = list(size) if isinstance(size, list | tuple) else [size, size]
    if len(pair) != 2:
        raise config_error("vision_cfg.image_size", size, "a number or a pair is needed")
    height, width = (positive({"image_size": side}, "image_size", most=MOST_PIXELS) for side in pair)
    return height, width


def _vit(config: Json, image_size: tuple[int, int], activation: Activation, embed_dim: int) -> VitConfig:
    width = positive(config, "width", default=768)
    heads = max(width // positive(config, "head_width", default=64), 1)
    pooling = _image_pooling(config)
    pool_heads = positive(config, "attn_pooler_heads", default=8)
    if pooling == "queries" and embed_dim % pool_heads:
        raise config_error("attn_pooler_heads", pool_heads, f"they must divide the embedding {embed_dim}")
    return VitConfig(
        image_size,
        check_patch(square(config, "patch_size", default=16, most=MOST_PIXELS), image_size),
        _transformer(config, width, heads, activation),
        pre_norm=not flag(config, "no_ln_pre"),
        pooling=pooling,
        norm_after_pool=pooling == "average" and flag(config, "final_ln_after_pool"),
        pool_heads=pool_heads if pooling == "queries" else 1,
        pool_queries=positive(config, "attn_pooler_queries", default=256) if pooling == "queries" else 1,
    )


def _image_pooling(config: Json) -> ImagePooling:
    if flag(config, "attentional_pool"):
        choice(config, "pool_type", ("tok",), default="tok")
        return "queries"
    return "token" if choice(config, "pool_type", ("tok", "avg"), default="tok") == "tok" else "average"


def _transformer(config: Json, width: int, heads: int, activation: Activation) -> TransformerConfig:
    transformer = TransformerConfig(
        width,
        positive(config, "layers", default=12, most=MOST_LAYERS),
        heads,
        _mlp_width(config, width),
        _approximation(config, activation),
        fraction(_options(config, "norm_kwargs", ("eps",)), "eps", default=1e-5),
        layer_scale=config.get("ls_init_value") is not None,
    )
    return check_heads(transformer)


def _options(config: Json, key: str, known: tuple[str, ...]) -> Json:
    """Return the keyword arguments of a layer, refusing those that nobody here reads."""
    options = config.get(key) or {}
    if not isinstance(options, dict) or not set(options) <= set(known):
        raise config_error(key, options, f"only {', '.join(known)} may be set")
    return options


def _approximation(config: Json, activation: Activation) -> Activation:
    options = _options(config, "act_kwargs", ("approximate",))
    kind = choice(options, "approximate", ("none", "tanh"), default="none")
    if kind == "none":
        return activation
    if activation == "quick_gelu":
        raise config_error("act_kwargs", options, "QuickGELU has no such option")
    return "gelu_tanh"


def _mlp_width(config: Json, width: int) -> int:
    ratio = config.get("mlp_ratio", 4.0)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= MOST_MLP_RATIO:
        raise config_error("mlp_ratio", ratio, f"a number above 0 and up to {MOST_MLP_RATIO} is needed")
    return positive({"mlp width": int(width * ratio)}, "mlp width", most=MOST * MOST_MLP_RATIO)


def _resnet(config: Json, image_size: tuple[int, int], head_width: int) -> ResNetConfig:
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


def _text(config: Json, activation: Activation) -> TextConfig:
    width = positive(config, "width", default=512)
    named = choice(config, "pool_type", tuple(TEXT_POOLINGS), default="argmax")
    projected = choice(config, "proj_type", ("linear", "none"), default="linear") == "linear"
    return TextConfig(
        positive(config, "vocab_size", default=49408),
        positive(config, "context_length", default=77),
        _transformer(config, width, positive(config, "heads", default=8), activation),
        end_id=token_id(config, "eos_id", default=2) if named == "eos" else None,
        causal=not flag(config, "no_causal_mask"),
        pooling="class" if flag(config, "embed_cls") else TEXT_POOLINGS[named],
        pad_id=token_id(config, "pad_id", default=0),
        projection=projected,
        projection_bias=projected and flag(config, "proj_bias"),
    )
