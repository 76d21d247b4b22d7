"""How images are shown to the model, and how embeddings become a loss."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from wordlight.clip.preprocess import Layout, ValueRange
from wordlight.errors import WordlightError

LossName = Literal["cosine", "spherical", "softmax", "directional", "sigmoid"]


@dataclass(frozen=True)
class ViewConfig:
    """Random views that are shown to the model instead of the image itself.

    Every view is a crop of its own, in CLIP-guided work also called a cutout. The loss is the mean over them,
    and one pass of the image tower embeds all of them.

    Attributes:
        count: views of every image.
        zoom: range of a window's side as a fraction of the image's.
        shift: largest displacement of the window, as a fraction of the side. Windows stay inside the image
            where `zoom[1] + 2 * shift` is at most 1; beyond it, its edge is repeated.
        blur: range of the blur's half-width in pixels of the model's image; 1 is none.
        noise: largest standard deviation of added noise.

    Raises:
        WordlightError: a range is empty or outside what it can be.
    """

    count: int = 1
    zoom: tuple[float, float] = (0.9, 1.1)
    shift: float = 0.05
    blur: tuple[float, float] = (1.0, 2.0)
    noise: float = 0.03

    def __post_init__(self) -> None:
        if self.count < 1:
            raise _bad_views(f"count {self.count}", "there must be a view to look at")
        for name in ("zoom", "blur"):
            if not isinstance(getattr(self, name), tuple | list) or len(getattr(self, name)) != 2:
                raise _bad_views(f"{name} {getattr(self, name)}", "it is a range, two numbers")
        if not 0 < self.zoom[0] <= self.zoom[1] < math.inf:
            raise _bad_views(f"zoom {self.zoom}", "it is a range of positive sides, lower end first")
        if not 1 <= self.blur[0] <= self.blur[1] < math.inf:
            raise _bad_views(f"blur {self.blur}", "it is a range of at least 1, lower end first")
        if not (0 <= self.shift < math.inf and 0 <= self.noise < math.inf):
            raise _bad_views(f"shift {self.shift} and noise {self.noise}", "they must not be negative")


@dataclass(frozen=True)
class GuidanceConfig:
    """How embeddings become a loss.

    Attributes:
        loss: `"cosine"` and `"spherical"` look at each target alone (negatives are pushed away with the same
            measure); `"softmax"` makes each prompt win against all negatives; `"directional"` compares what
            changed in the image with what changed in the text; `"sigmoid"` asks whether a prompt fits and
            each negative does not, for models that were trained so (SigLIP).
        pull: weight of the cosine loss in the softmax and sigmoid losses, which goes on pulling once a prompt
            has won.
        views: random views; None shows the model the image as it is.
        value_range: of the images, `"unit"`, `"byte"` or `"signed"`; views need `"unit"`.
        layout: of the images; views need `"HWC"`.

    Raises:
        WordlightError: there is no such loss, range or layout, or views are asked for on other images than
            those.
    """

    loss: LossName = "cosine"
    pull: float = 0.0
    views: ViewConfig | None = None
    value_range: ValueRange = "unit"
    layout: Layout = "HWC"

    def __post_init__(self) -> None:
        if self.loss not in get_args(LossName):
            raise WordlightError(
                f"There is no guidance loss {self.loss!r}. The name is misspelt, or the loss takes more than "
                f"targets. Use one of {', '.join(get_args(LossName))}, or call wordlight.losses yourself."
            )
        for name, kind in (("value_range", ValueRange), ("layout", Layout)):
            if getattr(self, name) not in get_args(kind):
                raise WordlightError(
                    f"There is no {name} {getattr(self, name)!r}. Other programs have other words for it. "
                    f"Use one of {', '.join(map(repr, get_args(kind)))}."
                )
        if self.views is not None and (self.value_range, self.layout) != ("unit", "HWC"):
            raise WordlightError(
                f"Random views were asked for with value range {self.value_range!r} and layout "
                f"{self.layout!r}. Blur and noise are defined on [0, 1] images with channels last. Convert "
                "the image, or set views to None."
            )


def _bad_views(what: str, reason: str) -> WordlightError:
    return WordlightError(
        f"The views' {what} cannot be: {reason}. The numbers are fractions of the image, except blur (pixels "
        "of the model's image). See ViewConfig for what each of them means."
    )
