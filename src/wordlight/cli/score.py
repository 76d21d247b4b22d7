"""`wordlight score`: how well pictures match texts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from wordlight.errors import WordlightError


@dataclass(frozen=True)
class Score:
    """Print how well pictures match texts, as a table.

    The similarity is the cosine of the two embeddings, from -1 to 1; the probability is the softmax of a
    picture's similarities over the given texts, at the model's own temperature, and left out for a single
    text. Transparent parts of pictures count as white.

    Attributes:
        images: Picture files.
        text: A text to compare with; give the option once for each.
        model: demo, a folder with a checkpoint, or an id on the Hugging Face Hub.
    """

    images: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="IMAGE ...")]
    text: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    model: str = "demo"

    def run(self) -> int:
        """Read everything, then print the table."""
        from wordlight.cli.images import read_image
        from wordlight.clip.load import load

        self._check()
        pictures = [read_image(path) for path in self.images]
        self._show(*similarities(load(self.model), pictures, list(self.text)))
        return 0

    def _check(self) -> None:
        if not self.images:
            raise WordlightError(
                "No picture was given. A pattern that matches no file is the usual cause. Name at least one "
                "picture file."
            )
        if not self.text or not all(text.strip() for text in self.text):
            raise WordlightError(
                f"The texts {list(self.text)} hold an empty one, or there is none. An unset variable is the "
                "usual cause. Give "
                '--text "a red car", once for each text.'
            )

    def _show(self, cosines: list[list[float]], shares: list[list[float]]) -> None:
        from rich.table import Table
        from rich.text import Text

        from wordlight.cli.tables import print_whole

        table = Table("image", "text")
        figures = ("similarity", "probability") if len(self.text) > 1 else ("similarity",)
        for figure in figures:
            table.add_column(figure, justify="right")
        for path, row, probabilities in zip(self.images, cosines, shares, strict=True):
            for text, cosine, share in zip(self.text, row, probabilities, strict=True):
                cells = (f"{cosine:.4f}", f"{share:.1%}")[: len(figures)]
                table.add_row(Text(str(path)), Text(text), *cells)
        print_whole(table)


def similarities(model, pictures, texts: list[str]) -> tuple[list[list[float]], list[list[float]]]:
    """Return cosines and probabilities, one row a picture and one column a text."""
    import jax
    import jax.numpy as jnp

    text_embeds = model.encode_text(texts)
    image_embeds = jnp.stack([model.encode_image(jnp.asarray(picture)) for picture in pictures])
    shares = jax.nn.softmax(model.logits(image_embeds, text_embeds), axis=-1)
    return (image_embeds @ text_embeds.T).tolist(), shares.tolist()
