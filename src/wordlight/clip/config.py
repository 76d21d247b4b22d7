"""Frozen, hashable descriptions of a CLIP model: what the towers compute, apart from their weights."""

from dataclasses import dataclass
from typing import Literal

Activation = Literal["quick_gelu", "gelu", "gelu_tanh"]
ImagePooling = Literal["token", "average", "latent", "queries"]
TextPooling = Literal["end", "last", "first", "class"]


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
        layer_scale: whether a learned scale for each feature follows attention and MLP (arXiv 2103.17239).
    """

    width: int
    layers: int
    heads: int
    mlp_width: int
    activation: Activation = "quick_gelu"
    norm_epsilon: float = 1e-5
    layer_scale: bool = False


@dataclass(frozen=True)
class VitConfig:
    """A vision transformer, as in CLIP (class token), CLIPA (mean), SigLIP (latent) or CoCa (queries).

    Attributes:
        image_size: (height, width) of the preprocessed image; what does not fill a patch is not looked at.
        patch_size: side of the square patches in pixels.
        transformer: the blocks.
        patch_bias: whether the patch embedding has a bias.
        pre_norm: whether a layer norm precedes the blocks.
        class_token: whether a learned token comes before the patches.
        pooling: `"token"` takes the class token, `"average"` the mean of the patches, `"latent"` lets one
            learned token attend to the patches with an MLP behind it, `"queries"` takes the first of several
            learned queries that attend to all tokens.
        norm_after_pool: whether the last norm follows the mean; with other poolings it makes no difference.
        pool_heads: attention heads of a `"latent"` or `"queries"` pooling.
        pool_queries: learned queries of a `"queries"` pooling.
        projection: whether a last matrix leads to the embedding; otherwise the width is the embedding's.
    """

    image_size: tuple[int, int]
    patch_size: int
    transformer: TransformerConfig
    patch_bias: bool = False
    pre_norm: bool = True
    class_token: bool = True
    pooling: ImagePooling = "token"
    norm_after_pool: bool = False
    pool_heads: int = 1
    pool_queries: int = 1
    projection: bool = True

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.image_size[0] // self.patch_size, self.image_size[1] // self.patch_size

    @property
    def tokens(self) -> int:
        """Tokens inside the tower."""
        return self.grid[0] * self.grid[1] + self.class_token


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
    """The text transformer.

    Attributes:
        vocab_size: number of token ids.
        context_length: longest sequence.
        transformer: the blocks.
        end_id: the id whose first position is pooled by `"end"`; None pools at the largest id, as OpenAI's
            code does.
        causal: whether a token sees only those before it.
        pooling: `"end"` takes the end token, `"last"` and `"first"` that position of the sequence, `"class"`
            a learned token behind it.
        pad_id: what fills a sequence up where the last position is pooled, and what a class token does not
            see.
        projection: whether a last linear map leads to the embedding.
        projection_bias: whether that map has a bias.
    """

    vocab_size: int
    context_length: int
    transformer: TransformerConfig
    end_id: int | None = None
    causal: bool = True
    pooling: TextPooling = "end"
    pad_id: int = 0
    projection: bool = True
    projection_bias: bool = False

    @property
    def tokens(self) -> int:
        """Longest sequence inside the tower."""
        return self.context_length + (self.pooling == "class")

    @property
    def sees_padding(self) -> bool:
        """Whether the tower was trained with what fills a sequence up in sight."""
        return not self.causal or self.pooling == "last"


def siglip_vision(image_size: tuple[int, int], patch_size: int, transformer: TransformerConfig) -> VitConfig:
    """Return SigLIP's image tower: no class token, a latent that attends to all patches, no projection."""
    return VitConfig(
        image_size,
        patch_size,
        transformer,
        patch_bias=True,
        pre_norm=False,
        class_token=False,
        pooling="latent",
        pool_heads=transformer.heads,
        projection=False,
    )


def siglip_text(
    vocab_size: int, context_length: int, transformer: TransformerConfig, *, pad_id: int = 1
) -> TextConfig:
    """Return SigLIP's text tower: it sees both ways and pools the last position of a full row."""
    return TextConfig(
        vocab_size,
        context_length,
        transformer,
        causal=False,
        pooling="last",
        pad_id=pad_id,
        projection_bias=True,
    )


@dataclass(frozen=True)
class ClipConfig:
    """An image tower, a text tower and the width of the space they share.

    Attributes:
        embed_dim: features of an embedding.
        vision: the image tower.
        text: the text tower, or None for a model that only sees.
        sigmoid: whether pairs are judged by a sigmoid with a learned bias (SigLIP), not by a softmax.
    """

    embed_dim: int
    vision: VitConfig | ResNetConfig
    text: TextConfig | None
    sigmoid: bool = False
