"""From prompts and pictures to a loss on traced images: targets are embedded once, and held."""

from wordlight.guidance.config import GuidanceConfig as GuidanceConfig
from wordlight.guidance.config import LossName as LossName
from wordlight.guidance.config import ViewConfig as ViewConfig
from wordlight.guidance.ensemble import EnsembleMetrics as EnsembleMetrics
from wordlight.guidance.ensemble import GuidanceEnsemble as GuidanceEnsemble
from wordlight.guidance.ensemble import members as members
from wordlight.guidance.guidance import EditSource as EditSource
from wordlight.guidance.guidance import Guidance as Guidance
from wordlight.guidance.guidance import GuidanceMetrics as GuidanceMetrics
from wordlight.guidance.view_dependent import ViewDependentGuidance as ViewDependentGuidance
from wordlight.viewpoints import view_shares as view_shares
