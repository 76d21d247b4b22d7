"""What the reference programs do to a text before its tokenizer sees it.

`"none"`: nothing; tokenizers of `transformers` bring their own normalisation. `"lower"`: mended characters
and HTML entities, single spaces, lower case, as OpenAI's and OpenCLIP's tokenizer does. `"whitespace"`: the
same with its case kept. `"canonical"`: the same in lower case without ASCII punctuation, as OpenCLIP prepares
SigLIP's texts. `"siglip"`: lower case without punctuation alone, as `transformers` does. `"lower-only"`:
lower case alone, which SigLIP 2 was trained on.
"""

import html
import re
import string
from typing import Literal

Cleaning = Literal["none", "lower", "whitespace", "canonical", "siglip", "lower-only"]

PUNCTUATION = str.maketrans("", "", string.punctuation)


def clean(text: str, cleaning: Cleaning) -> str:
    """Return the text as a reference program would pass it on to its tokenizer."""
    if cleaning == "none":
        return text
    if cleaning == "lower-only":
        return text.lower()
    if cleaning == "siglip":
        return _single_spaces(text.lower().translate(PUNCTUATION))
    mended = _mended(text)
    if cleaning == "canonical":
        return _single_spaces(mended.replace("_", " ").translate(PUNCTUATION).lower())
    spaced = _single_spaces(mended)
    return spaced.lower() if cleaning == "lower" else spaced


def _mended(text: str) -> str:
    import ftfy  # a large package, loaded with the first text that needs it

    return html.unescape(html.unescape(ftfy.fix_text(text))).strip()


def _single_spaces(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
