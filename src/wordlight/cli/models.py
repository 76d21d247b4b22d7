"""`wordlight models`: what can be loaded, and what is on this disk."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from wordlight.clip.config import ClipConfig


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
        rows = [*_embedded(), *((m.name, m.family, m.config, m.parameters) for m in known_models())]
        for name, family, config, parameters in rows:
            here = family == EMBEDDED_FAMILY or is_cached(name)
            if (here or not self.local) and self.family.lower() in family.lower():
                size = " x ".join(map(str, config.vision.image_size))
                count = f"{parameters / 1e6:.1f} M"
                table.add_row(name, family, size, count, _activation(config), "yes" if here else "")
        return table


EMBEDDED_FAMILY = "in this package"


def _embedded() -> list[tuple[str, str, "ClipConfig", int]]:
    import jax

    from wordlight.clip.hub import EMBEDDED
    from wordlight.clip.load import load

    models = [(name, load(name)) for name in EMBEDDED]
    return [
        (name, EMBEDDED_FAMILY, m.config, sum(x.size for x in jax.tree.leaves(m.params)))
        for name, m in models
    ]


def _activation(config: "ClipConfig") -> str:
    from wordlight.clip.config import ResNetConfig

    return "relu" if isinstance(config.vision, ResNetConfig) else config.vision.transformer.activation
