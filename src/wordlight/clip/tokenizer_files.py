"""Tokenizers from the files that checkpoints bring, and the word-level files that closed models write."""

import gzip
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

from wordlight.clip.text_cleaning import Cleaning
from wordlight.errors import WordlightError

START, END = "<|startoftext|>", "<|endoftext|>"
OPENAI_FILE = "bpe_simple_vocab_16e6.txt.gz"
OPENAI_MERGES = 49152 - 256 - 2  # OpenAI's vocabulary stops here, although the file goes on
LEFT_PADDED = ("GemmaTokenizer", "Siglip2Tokenizer")  # where nothing is said
_LARGEST_LENGTH = 100_000  # transformers writes about 1e30 where no limit is known
_WORDS = r"""<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""


class TokenizerSource(NamedTuple):
    """What the files of a checkpoint say about its text.

    Attributes:
        backend: the tokenizer, which frames every text with the checkpoint's own special tokens.
        context_length: the limit the files name, if they name one.
        pad_id: the padding they name, if they name one.
        unknown_id: for a closed vocabulary, the id of unknown words.
        digest: a hash of everything above.
        cleaning: what the class of the tokenizer does to a text first.
        pads_left: whether padding comes before the text.
    """

    backend: tokenizers.Tokenizer
    context_length: int | None
    pad_id: int | None
    unknown_id: int | None
    digest: str
    cleaning: Cleaning = "none"
    pads_left: bool = False


def read_tokenizer_files(folder: Path) -> TokenizerSource | None:
    """Read whichever tokenizer files a folder has; None where it has none.

    Raises:
        WordlightError: a file is damaged, or one of a pair is missing.
    """
    found = _read_backend(folder)
    if found is None:
        return None
    backend, cleaning = found
    backend.no_truncation()
    settings = _read_json(folder / "special_tokens_map.json") | _read_json(folder / "tokenizer_config.json")
    length = settings.get("model_max_length")
    known = isinstance(length, int) and not isinstance(length, bool) and 0 < length < _LARGEST_LENGTH
    pad_id, pads_left = _pad_id(backend, settings, folder), _pads_left(backend, settings)
    backend.no_padding()
    unknown_id = _closed_unknown_id(backend)
    text = f"{length if known else None} {pad_id} {pads_left} {unknown_id} {backend.to_str()}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    if _class_name(settings) == "SiglipTokenizer":
        cleaning = "siglip" if settings.get("do_lower_case", True) else "none"
    limit = length if known else None
    return TokenizerSource(backend, limit, pad_id, unknown_id, digest, cleaning, pads_left)


def _class_name(settings: dict[str, Any]) -> str:
    return str(settings.get("tokenizer_class", "")).removesuffix("Fast")


def _pads_left(backend: tokenizers.Tokenizer, settings: dict[str, Any]) -> bool:
    """Return the side that transformers takes: what the settings say, else the tokenizer's own file, else
    the class."""
    usual = "left" if _class_name(settings) in LEFT_PADDED else "right"
    side = settings.get("padding_side") or (backend.padding or {}).get("direction") or usual
    return str(side).lower() == "left"


def _read_backend(folder: Path) -> tuple[tokenizers.Tokenizer, Cleaning] | None:
    """Return the tokenizer, and what the program that writes such files does to a text first."""
    vocabulary, merges, openai = folder / "vocab.json", folder / "merges.txt", folder / OPENAI_FILE
    if (folder / "tokenizer.json").is_file():
        return _from_file(folder / "tokenizer.json"), "none"
    if vocabulary.is_file() and merges.is_file():
        return clip_bpe(_vocabulary(vocabulary), read_merges(_read_text(merges))), "none"
    if openai.is_file():
        return openai_bpe(openai), "lower"
    present = [path.name for path in (vocabulary, merges) if path.is_file()]
    if present:
        raise WordlightError(
            f"{folder} holds {present[0]} without its other half. Byte-pair encoding needs vocab.json and "
            "merges.txt, and a download probably left one out. Fetch both, or tokenizer.json."
        )
    return None


def clip_bpe(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> tokenizers.Tokenizer:
    """Return CLIP's byte-pair tokenizer, as transformers' CLIPTokenizer builds it: NFC, lower case, `</w>`.

    Raises:
        WordlightError: the vocabulary lacks a special token, or a token that a merge makes.
    """
    missing = [token for token in (START, END) if token not in vocabulary]
    if missing:
        raise WordlightError(
            f"The vocabulary lacks {missing}. It is another model's, or cut short. CLIP's vocab.json has "
            "49408 entries."
        )
    try:
        model = models.BPE(vocab=vocabulary, merges=merges, end_of_word_suffix="</w>", unk_token=END)
    except Exception as error:  # the library raises the bare class
        raise WordlightError(
            f"vocab.json and merges.txt do not fit together ({error}). They come from two models, or one "
            "was edited. Fetch both from the same repository."
        ) from error
    backend = tokenizers.Tokenizer(model)
    backend.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(
        (END, vocabulary[END]), (START, vocabulary[START]), trim_offsets=False, add_prefix_space=False
    )
    backend.add_special_tokens([START, END])
    return backend


def openai_bpe(file: Path) -> tokenizers.Tokenizer:
    """Return CLIP's tokenizer from the vocabulary file that OpenAI's and OpenCLIP's programs bring.

    Raises:
        WordlightError: the file cannot be read.
    """
    try:
        text = gzip.decompress(file.read_bytes()).decode("utf-8")
    except (OSError, EOFError, ValueError) as error:
        raise _unreadable(file, error) from error
    merges = read_merges(text)[:OPENAI_MERGES]
    alphabet = _byte_letters()
    tokens = [*alphabet, *(letter + "</w>" for letter in alphabet), *(a + b for a, b in merges), START, END]
    return clip_bpe({token: number for number, token in enumerate(tokens)}, merges)


def write_word_level_tokenizer(folder: Path, vocabulary: Iterable[str], context_length: int) -> None:
    """Write the tokenizer files of a model that knows whole words only, readable by transformers too.

    Ids: 0 `<pad>`, 1 `<unk>`, the sorted words, `<start>`, `<end>`; so the end is the largest id. Text is
    lower-cased, and punctuation separates words and is dropped.

    Args:
        folder: where `tokenizer.json`, `tokenizer_config.json` and `special_tokens_map.json` go; must exist.
        vocabulary: the words, lower case, without spaces or punctuation.
        context_length: how many tokens the text tower takes, start and end included.

    Raises:
        WordlightError: a word could never be read back.
    """
    backend = word_level_tokenizer(vocabulary)
    special = {"unk_token": "<unk>", "bos_token": "<start>", "eos_token": "<end>", "pad_token": "<pad>"}
    config = special | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
    }
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "special_tokens_map.json").write_text(json.dumps(special, indent=2) + "\n", encoding="utf-8")


def word_level_tokenizer(vocabulary: Iterable[str]) -> tokenizers.Tokenizer:
    """Return the tokenizer that `write_word_level_tokenizer` writes."""
    words = sorted(set(vocabulary))
    tokens = ["<pad>", "<unk>", *words, "<start>", "<end>"]
    ids = {token: number for number, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(models.WordLevel(vocab=ids, unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("removed")]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<start> $A <end>", special_tokens=[("<start>", ids["<start>"]), ("<end>", ids["<end>"])]
    )
    backend.add_special_tokens(["<pad>", "<unk>", "<start>", "<end>"])
    unreadable = [word for word in words if backend.encode(word).ids[1:-1] != [ids[word]]]
    if unreadable or not words:
        raise WordlightError(
            f"The vocabulary {'is empty' if not words else f'holds {unreadable[:5]}'}. Text is lower-cased "
            "and split at spaces and punctuation before it is looked up, so such a word is never found. "
            "Give single lower-case words."
        )
    return backend


def _from_file(file: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises the bare class
        raise _unreadable(file, error) from error


def _vocabulary(file: Path) -> dict[str, int]:
    entries = _read_json(file)
    if not all(isinstance(number, int) for number in entries.values()):
        raise _unreadable(file, TypeError("an id is not an integer"))
    return entries


def read_merges(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a merges file, in the order of their rank.

    Raises:
        WordlightError: a line is not a pair.
    """
    lines = text.splitlines()
    if lines and "#version" in lines[0]:
        lines = lines[1:]
    pairs = [line.split(" ") for line in lines if line.strip()]
    wrong = [pair for pair in pairs if len(pair) != 2]
    if wrong:
        raise WordlightError(
            f"A merge is {' '.join(wrong[0])!r}, not two tokens. The merges file is damaged or another kind "
            "of file. Fetch it again."
        )
    return [(pair[0], pair[1]) for pair in pairs]


def _byte_letters() -> list[str]:
    """Return the letters that stand for the 256 bytes, in the order of OpenAI's ids: printable bytes
    first."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    others = range(256 - len(printable))
    return [chr(byte) for byte in printable] + [chr(256 + k) for k in others]


def _pad_id(backend: tokenizers.Tokenizer, settings: dict[str, Any], folder: Path) -> int | None:
    token = settings.get("pad_token")
    token = token.get("content") if isinstance(token, dict) else token
    if token is None:
        return backend.padding["pad_id"] if backend.padding else None
    number = backend.token_to_id(token) if isinstance(token, str) else None
    if number is None:
        raise WordlightError(
            f"The padding token {token!r} of {folder} is not in its vocabulary. tokenizer_config.json "
            "belongs to another model, or the vocabulary is cut short. Fetch both from the same repository."
        )
    return number


def _closed_unknown_id(backend: tokenizers.Tokenizer) -> int | None:
    """A word-level vocabulary is closed; byte-pair and sentence-piece ones can write any text."""
    model = backend.model
    return backend.token_to_id(model.unk_token) if isinstance(model, models.WordLevel) else None


def _read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        value = json.loads(_read_text(file))
    except (ValueError, RecursionError) as error:
        raise _unreadable(file, error) from error
    if not isinstance(value, dict):
        raise _unreadable(file, TypeError(f"a JSON {type(value).__name__}, not an object"))
    return value


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> WordlightError:
    return WordlightError(
        f"{file} is not a readable tokenizer file ({error}). The download was probably cut short, or the "
        "file is a Git LFS pointer. Fetch it again."
    )
