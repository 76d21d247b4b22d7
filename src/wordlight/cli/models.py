"""`wordlight models`: what can be loaded, and what is on this disk."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wordlight.errors import WordlightError

if TYPE_CHECKING:
    from rich.table import Table

    from wordlight.clip.config import ClipConfig
    from wordlight.clip.known_models import KnownModel


@dataclass(frozen=True)
class Models:
    """List the models in this package and published checkpoints by their ids on the Hugging Face Hub.

    Any other checkpoint of these families loads too: give wordlight.load its id or its folder.

    Attributes:
        local: Only those that are on this disk.
        family: Only those of a family whose name holds this text.
    """

    local: bool = False
    family: str = ""

    def run(self) -> int:
        """Print the table."""
        from wordlight.cli.tables import print_whole

        print_whole(self.table())
        return 0

    def table(self) -> "Table":
        """Return the table.

        Raises:
            WordlightError: no family's name holds the text.
        """
        from rich.table import Table

        from wordlight.clip.hub import is_cached

        table = Table("model", "family", "image", "parameters", "activation", "on this disk")
        for model in self._chosen():
            here = model.family == EMBEDDED_FAMILY or is_cached(model.name)
            if here or not self.local:
                size = " x ".join(map(str, model.config.vision.image_size))
                count = f"{model.parameters / 1e6:.1f} M"
                activation = _activation(model.config)
                table.add_row(model.name, model.family, size, count, activation, "yes" if here else "")
        return table

    def _chosen(self) -> list["KnownModel"]:
        from wordlight.clip.known_models import known_models

        every = [*_embedded(), *known_models()]
        chosen = [model for model in every if self.family.lower() in model.family.lower()]
        if not chosen:
            families = ", ".join(dict.fromkeys(model.family for model in every))
            raise WordlightError(
                f"No family is called {self.family!r}. It is misspelt, or its checkpoints are not listed, "
                f"although they may load. The families are: {families}. Give a part of one of these names."
            )
        return chosen


EMBEDDED_FAMILY = "in this package"


def _embedded() -> list["KnownModel"]:
    from wordlight.clip.hub import EMBEDDED, HubOptions, find_folder
    from wordlight.clip.known_models import KnownModel
    from wordlight.clip.processing import read_processing

    folders = {name: find_folder(name, HubOptions()) for name in EMBEDDED}
    return [KnownModel(n, EMBEDDED_FAMILY, read_processing(f).config) for n, f in folders.items()]


def _activation(config: "ClipConfig") -> str:
    from wordlight.clip.config import ResNetConfig

    return "relu" if isinstance(config.vision, ResNetConfig) else config.vision.transformer.activation
