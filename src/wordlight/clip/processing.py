"""A checkpoint apart from its weights: what its towers compute, and how it wants images and text."""

from pathlib import Path
from typing import Any, NamedTuple

from wordlight.clip.checkpoint_files import read_json
from wordlight.clip.config import ClipConfig
from wordlight.clip.config_hf import hf_config
from wordlight.clip.config_open_clip import open_clip_config, open_clip_text_rules
from wordlight.clip.config_values import config_error
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.text_cleaning import Cleaning
from wordlight.clip.tokenizer import TextRules, Tokenizer
from wordlight.errors import WordlightError

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
    if (folder / OPEN_CLIP_FILE).is_file():
        return _open_clip(folder)
    if (folder / HF_FILE).is_file():
        return _hf(folder)
    raise WordlightError(
        f"{folder} holds neither config.json nor open_clip_config.json. It is not a model folder, or only a "
        "part of one (a parent folder, a tokenizer, an adapter). Give the folder that holds the "
        "configuration and the weights."
    )


def _hf(folder: Path) -> Processing:
    raw = read_json(folder / HF_FILE)
    config = hf_config(raw)
    # SigLIP 2 was trained on lower case, whether its tokenizer's files say so or not.
    rules = TextRules(_siglip_cleaning(folder)) if config.sigmoid else None
    return Processing(config, _hf_image_spec(folder, config), _tokenizer(folder, config, rules), raw, False)


def _hf_image_spec(folder: Path, config: ClipConfig) -> ImageSpec:
    for name in ("preprocessor_config.json", "processor_config.json"):
        if (folder / name).is_file():
            return _checked(ImageSpec.from_hf(read_json(folder / name), config.vision.image_size), config)
    return ImageSpec.from_hf({}, config.vision.image_size)


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
