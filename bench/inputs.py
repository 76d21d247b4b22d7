"""What all routes of a row are given."""

import numpy as np


def pixels_and_target(batch: int, size: int, embed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return preprocessed pixels `[batch, 3, size, size]` and a unit target embedding."""
    rng = np.random.default_rng(0)
    pixels = rng.standard_normal((batch, 3, size, size), dtype=np.float32)
    target = rng.standard_normal(embed, dtype=np.float32)
    return pixels, target / np.linalg.norm(target)


def prompts(count: int) -> list[str]:
    """Return different sentences of usual lengths."""
    rng = np.random.default_rng(0)
    sizes = ("small", "large", "tiny", "huge")
    colours = ("red", "green", "blue", "yellow", "purple", "orange")
    things = ("bulldozer", "castle on a hill", "steam train", "fishing boat at dawn", "robot", "teapot")
    ways = ("a photo of", "an oil painting of", "a 3d render of", "a sketch in pencil of")
    drawn = rng.integers(4, size=(count, 4))
    return [
        f"{ways[w]} a {sizes[s]} {colours[c]} {things[t]}, number {index}"
        for index, (w, s, c, t) in enumerate(drawn)
    ]


def images_and_weights(batch: int, size: int, output: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images `[batch, size, size, 3]` and weights of the preprocessed pixels."""
    rng = np.random.default_rng(0)
    images = rng.random((batch, size, size, 3), dtype=np.float32)
    return images, rng.standard_normal((batch, output, output, 3), dtype=np.float32)
