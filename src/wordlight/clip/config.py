"""Frozen, hashable descriptions of a CLIP model: what the towers compute, apart from their weights."""

from dataclasses import dataclass
from typing import Literal

Activation = Literal["quick_gelu", "gelu", "gelu_tanh"]


@dataclass(frozen=True)
class TransformerConfig:
    """A pre-norm transformer stack.

    Attributes:
        width: features of a token.
        layers: number of blocks.
        heads: attention heads; `width` is a multiple of it.
        mlp_width: features inside a block's MLP.
        activation: `"quick_gelu"` is x * sigmoid(1.702 x), `"gelu"` the exact one, `"gelu_tanh"` its tanh
            form.
        norm_epsilon: added to the variance in every layer norm.
    """

    width: int
    layers: int
    heads: int
    mlp_width: int
    activation: Activation = "quick_gelu"
    norm_epsilon: float = 1e-5


@dataclass(frozen=True)
class VitConfig:
    """A vision transformer with a class token, as in CLIP.

    Attributes:
        image_size: (height, width) of the preprocessed image; what does not fill a patch is not looked at.
        patch_size: side of the square patches in pixels.
        transformer: the blocks.
        patch_bias: whether the patch embedding has a bias.
        pre_norm: whether a layer norm precedes the blocks.
    """

    image_size: tuple[int, int]
    patch_size: int
    transformer: TransformerConfig
    patch_bias: bool = False
    pre_norm: bool = True

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.image_size[0] // self.patch_size, self.image_size[1] // self.patch_size


@dataclass(frozen=True)
class ResNetConfig:
    """CLIP's ModifiedResNet: a three-convolution stem, average-pooled strides and attention pooling.

    Attributes:
        image_size: (height, width) of the preprocessed image, multiples of 32.
        blocks: number of bottleneck blocks in each of the four stages.
        width: channels after the stem; the last stage has 32 times as many.
        heads: heads of the attention pooling.
        norm_epsilon: added to the variance in batch norm.
    """

    image_size: tuple[int, int]
    blocks: tuple[int, int, int, int]
    width: int
    heads: int
    norm_epsilon: float = 1e-5

    @property
    def features(self) -> int:
        """Channels that reach the attention pooling."""
        return self.width * 32

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns that reach the attention pooling."""
        return self.image_size[0] // 32, self.image_size[1] // 32


@dataclass(frozen=True)
class TextConfig:
    """The causal text transformer.

    Attributes:
        vocab_size: number of token ids.
        context_length: longest sequence.
        transformer: the blocks.
        end_id: the id whose first position is pooled; None pools at the largest id, as OpenAI's code does.
    """

    vocab_size: int
    context_length: int
    transformer: TransformerConfig
    end_id: int | None = None


@dataclass(frozen=True)
class ClipConfig:
    """An image tower, a text tower and the width of the space they share.

    Attributes:
        embed_dim: features of an embedding.
        vision: the image tower.
        text: the text tower, or None for a model that only sees.
    """

    embed_dim: int
    vision: VitConfig | ResNetConfig
    text: TextConfig | None
