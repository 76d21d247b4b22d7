"""Errors that Wordlight raises on purpose.

Every message has three parts: what happened, with the value; why it usually happens; what to do.
"""


class WordlightError(ValueError):
    """A refusal of input, a file, a configuration or a checkpoint, made before work starts."""
