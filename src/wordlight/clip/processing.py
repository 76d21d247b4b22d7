"""A checkpoint apart from its weights: what its towers compute, and how it wants images and text."""

from pathlib import Path
from typing import Any, NamedTuple

from wordlight.clip.checkpoint_files import HF_STEMS, OPEN_CLIP_STEMS, find_weights, read_json
from wordlight.clip.config import ClipConfig
from wordlight.clip.config_hf import hf_config
from wordlight.clip.config_open_clip import open_clip_config, open_clip_text_rules
from wordlight.clip.config_values import config_error
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.text_cleaning import Cleaning
from wordlight.clip.tokenizer import TextRules, Tokenizer
from wordlight.errors import WordlightError

HF_KINDS = ("clip", "siglip")
HF_FILE, OPEN_CLIP_FILE = "config.json", "open_clip_config.json"


class Processing(NamedTuple):
    """What the files of a folder say beside the weights.

    Attributes:
        config: the towers.
        image_spec: how images are preprocessed.
        tokenizer: None where the folder has no tokenizer files.
        raw: the configuration file itself.
        open_clip: whether the layout is OpenCLIP's.
    """

    config: ClipConfig
    image_spec: ImageSpec
    tokenizer: Tokenizer | None
    raw: dict[str, Any]
    open_clip: bool


def read_processing(folder: Path) -> Processing:
    """Read everything but the weights; the layout follows from the configuration file.

    Raises:
        WordlightError: there is no configuration file, or an entry of it cannot be.
    """
    if (folder / OPEN_CLIP_FILE).is_file() and not _only_hf_is_readable(folder):
        return _open_clip(folder)
    if (folder / HF_FILE).is_file():
        return _hf(folder)
    raise WordlightError(
        f"{folder} holds neither config.json nor open_clip_config.json. It is not a model folder, or only a "
        "part of one (a parent folder, a tokenizer, an adapter). Give the folder that holds the "
        "configuration and the weights."
    )


def _only_hf_is_readable(folder: Path) -> bool:
    """Whether a folder that holds the same model in both layouts has readable weights for one of them only,
    as where OpenCLIP's are PyTorch's own and PyTorch is not installed."""
    if find_weights(folder, OPEN_CLIP_STEMS) or not find_weights(folder, HF_STEMS):
        return False
    return (folder / HF_FILE).is_file() and read_json(folder / HF_FILE).get("model_type") in HF_KINDS


def _hf(folder: Path) -> Processing:
    raw = read_json(folder / HF_FILE)
    config = hf_config(raw)
    # SigLIP 2 was trained on lower case, whether its tokenizer's files say so or not.
    rules = TextRules(_siglip_cleaning(folder)) if config.sigmoid else None
    return Processing(config, _hf_image_spec(folder, config), _tokenizer(folder, config, rules), raw, False)


def _hf_image_spec(folder: Path, config: ClipConfig) -> ImageSpec:
    settings, family = _image_settings(folder), "siglip" if config.sigmoid else "clip"
    return _checked(ImageSpec.from_hf(settings, config.vision.image_size, family=family), config)


def _image_settings(folder: Path) -> dict[str, Any]:
    """Return the file that transformers 5 takes: `processor_config.json` if it speaks of images, else
    `preprocessor_config.json`; nothing where there is neither."""
    both, own = folder / "processor_config.json", folder / "preprocessor_config.json"
    settings = read_json(both) if both.is_file() else {}
    if settings.get("image_processor") is not None:
        return settings
    return read_json(own) if own.is_file() else {}


def _open_clip(folder: Path) -> Processing:
    raw = read_json(folder / OPEN_CLIP_FILE)
    config, rules = open_clip_config(raw), open_clip_text_rules(raw)
    preparation = raw.get("preprocess_cfg") or {}
    if not isinstance(preparation, dict):
        raise config_error("preprocess_cfg", preparation, "an object is needed")
    spec = _checked(ImageSpec.from_open_clip(preparation, config.vision.image_size), config)
    return Processing(config, spec, _tokenizer(folder, config, rules), raw, True)


def _checked(spec: ImageSpec, config: ClipConfig) -> ImageSpec:
    if spec.size != config.vision.image_size:
        raise config_error("preprocessed size", spec.size, f"the tower takes {config.vision.image_size}")
    return spec


def _siglip_cleaning(folder: Path) -> Cleaning | None:
    file = folder / "tokenizer_config.json"
    kind = read_json(file).get("tokenizer_class") if file.is_file() else None
    return None if str(kind).startswith("SiglipTokenizer") else "lower-only"


def _tokenizer(folder: Path, config: ClipConfig, rules: TextRules | None) -> Tokenizer | None:
    if config.text is None:
        return None
    tokenizer = Tokenizer.find(folder, config.text.context_length, rules=rules)
    if tokenizer is not None:
        _check_vocabulary(tokenizer, config.text.vocab_size)
    return tokenizer


def _check_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    highest = max(tokenizer.backend.get_vocab().values(), default=-1)
    if highest >= vocab_size:
        raise WordlightError(
            f"The tokenizer's ids go up to {highest}, and the text tower has {vocab_size} of them. The "
            "tokenizer files come from another checkpoint. Take them from the repository of the weights."
        )
