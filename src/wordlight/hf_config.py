"""A model's sizes under the names that they have in transformers. Reached through `wordlight.hf`."""

from dataclasses import dataclass

from wordlight.clip.config import ClipConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.save import HF_ACTIVATIONS
from wordlight.errors import WordlightError


@dataclass(frozen=True)
class CLIPTowerConfig:
    """What both towers have."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    hidden_act: str
    layer_norm_eps: float
    projection_dim: int


@dataclass(frozen=True)
class CLIPVisionConfig(CLIPTowerConfig):
    """The image tower; `image_size` is a (height, width) where the two differ."""

    image_size: int | tuple[int, int]
    patch_size: int
    num_channels: int = 3


@dataclass(frozen=True)
class CLIPTextConfig(CLIPTowerConfig):
    """The text tower."""

    vocab_size: int
    max_position_embeddings: int


@dataclass(frozen=True)
class CLIPConfig:
    """What `FlaxCLIPModel.config` is.

    Attributes:
        clip: Wordlight's own configuration, which says the same and more.
    """

    clip: ClipConfig

    @property
    def projection_dim(self) -> int:
        """Features of an embedding."""
        return self.clip.embed_dim

    @property
    def vision_config(self) -> CLIPVisionConfig:
        """The image tower.

        Raises:
            WordlightError: it is a ResNet.
        """
        vision = self.clip.vision
        if not isinstance(vision, VitConfig):
            raise _missing("vision_config", "its image tower is a ResNet, which transformers does not have")
        height, width = vision.image_size
        size = height if height == width else (height, width)
        return CLIPVisionConfig(*_tower(vision.transformer, self.clip.embed_dim), size, vision.patch_size)

    @property
    def text_config(self) -> CLIPTextConfig:
        """The text tower.

        Raises:
            WordlightError: it was dropped.
        """
        text = self.clip.text
        if not isinstance(text, TextConfig):
            raise _missing("text_config", "its text tower was dropped, as by without_text")
        sizes = text.vocab_size, text.context_length
        return CLIPTextConfig(*_tower(text.transformer, self.clip.embed_dim), *sizes)


def _tower(config: TransformerConfig, embed_dim: int) -> tuple[int, int, int, int, str, float, int]:
    activation = HF_ACTIVATIONS[config.activation]
    sizes = config.width, config.mlp_width, config.layers, config.heads
    return *sizes, activation, config.norm_epsilon, embed_dim


def _missing(name: str, why: str) -> WordlightError:
    return WordlightError(
        f"This model has no {name}: {why}. Its checkpoint is probably not one of transformers. Read "
        "model.clip.config, Wordlight's own."
    )
