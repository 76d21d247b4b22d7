"""`wordlight models`: what can be loaded, and what is on this disk."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        from rich.console import Console

        Console().print(self.table())
        return 0

    def table(self) -> "Table":
        """Return the table."""
        from rich.table import Table

        from wordlight.clip.hub import is_cached
        from wordlight.clip.known_models import known_models

        table = Table("model", "family", "image", "parameters", "activation", "on this disk")
        for model in (*_embedded(), *known_models()):
            if self.family.lower() not in model.family.lower():
                continue
            here = model.family == EMBEDDED_FAMILY or is_cached(model.name)
            if here or not self.local:
                size = " x ".join(map(str, model.config.vision.image_size))
                count = f"{model.parameters / 1e6:.1f} M"
                activation = _activation(model.config)
                table.add_row(model.name, model.family, size, count, activation, "yes" if here else "")
        return table


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
