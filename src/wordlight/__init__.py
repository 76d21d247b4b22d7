"""Image-text models as an exact, differentiable loss inside JAX programs, and radiance fields trained from
words.
"""

from wordlight import augment as augment
from wordlight import host as host
from wordlight import losses as losses
from wordlight.clip.image_spec import ImageSpec as ImageSpec
from wordlight.clip.load import load as load
from wordlight.clip.model import ClipModel as ClipModel
from wordlight.clip.preprocess import preprocess as preprocess
from wordlight.errors import WordlightError as WordlightError
from wordlight.guidance import Guidance as Guidance
from wordlight.guidance import GuidanceConfig as GuidanceConfig
from wordlight.guidance import GuidanceEnsemble as GuidanceEnsemble
from wordlight.guidance import ViewConfig as ViewConfig
from wordlight.guidance import ViewDependentGuidance as ViewDependentGuidance
from wordlight.radiance.accumulate import value_and_grad_over_rays as value_and_grad_over_rays
from wordlight.radiance.render import render_image as render_image
from wordlight.radiance.render import render_rays as render_rays

__all__ = [
    "ClipModel",
    "Guidance",
    "GuidanceConfig",
    "GuidanceEnsemble",
    "ImageSpec",
    "ViewConfig",
    "ViewDependentGuidance",
    "WordlightError",
    "augment",
    "host",
    "load",
    "losses",
    "preprocess",
    "render_image",
    "render_rays",
    "value_and_grad_over_rays",
]
