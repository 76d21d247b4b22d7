"""R-Precision: do judges that took no part in a run find its caption among all others?

Park et al. 2021, Benchmark for Compositional Text-to-Image Synthesis; for 3D objects Dream Fields (arXiv
2112.01455, section 4.1). A run is shown from held-out views; the mean of their unit embeddings ranks the
captions by cosine, which is the same as ranking by the mean of the views' cosines.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wordlight.clip.load import load
from wordlight.clip.model import ClipModel
from wordlight.data.world.captions import (
    VOCABULARY,
    all_captions,
    claims,
    fill,
    kind_caption,
    kind_captions,
    words,
)
from wordlight.data.world.colours import COLOUR_NAMES
from wordlight.data.world.objects import KIND_NAMES
from wordlight.errors import WordlightError
from wordlight.radiance.pyramid import PyramidField
from wordlight.radiance.render import shade
from wordlight.train.checkpoint import load_state
from wordlight.train.config import RunConfig
from wordlight.train.pictures import GREY, finished, held_out_cameras, render_views
from wordlight.train.run_file import read_run

JUDGES = ("judge-resnet", "judge-vit")
SIZE = 128
SAMPLES = 96


@dataclass(frozen=True)
class Ranking:
    """Where a judge puts the true caption.

    Attributes:
        top: the caption ranked first.
        rank: of the true caption, from 1.
        captions: how many were ranked.
    """

    top: str
    rank: int
    captions: int

    @property
    def right(self) -> bool:
        """Whether the true caption is first."""
        return self.rank == 1


@dataclass(frozen=True)
class Judgement:
    """What one judge says of one run: by its colours and shape, and by its shape alone."""

    colour: Ranking
    geometry: Ranking


@dataclass(frozen=True)
class SavedRun:
    """A run as it lies on the disk.

    Attributes:
        folder: where.
        config: of the run.
        field: of its latest checkpoint.
        status: `"finished"`, or how the run stands or ended.
        step: of the latest checkpoint.
    """

    folder: Path
    config: RunConfig
    field: PyramidField
    status: str
    step: int

    @classmethod
    def read(cls, folder: Path) -> "SavedRun":
        """Read a run.

        Raises:
            WordlightError: the folder holds no run or no checkpoint, or they cannot be read.
        """
        config, state = load_state(folder)
        return cls(folder, config, state.field, str(read_run(folder).get("status")), int(state.step))


@dataclass(frozen=True)
class RunJudgement:
    """What all judges say of one run.

    Attributes:
        run: the folder.
        prompt: of the run.
        caption: what should be ranked first in colour.
        kind_caption: what should be ranked first by shape.
        judges: by the judge's name.
        status: of the run; see `SavedRun`.
        step: that was judged.
        steps: that a finished run takes.
    """

    run: str
    prompt: str
    caption: str
    kind_caption: str
    judges: Mapping[str, Judgement]
    status: str = "finished"
    step: int = 0
    steps: int = 0

    @property
    def finished(self) -> bool:
        """Whether the run took all its steps and wrote its results."""
        return self.status == "finished"

    @property
    def colour_right(self) -> bool:
        """Whether all judges rank the caption first."""
        return all(judgement.colour.right for judgement in self.judges.values())

    @property
    def geometry_right(self) -> bool:
        """Whether all judges rank the kind's caption first by shape alone."""
        return all(judgement.geometry.right for judgement in self.judges.values())


@dataclass(frozen=True)
class Precision:
    """A share of runs, `right` of `runs`, with the standard error of a proportion, sqrt(p (1 - p) / n)."""

    right: int
    runs: int

    @property
    def value(self) -> float:
        """The share."""
        return self.right / self.runs

    @property
    def standard_error(self) -> float:
        """Its standard error; 0 where all or none are right, which says little for few runs."""
        return math.sqrt(self.value * (1 - self.value) / self.runs)


def evaluate(
    runs: Sequence[Path],
    *,
    judges: Mapping[str, ClipModel] | None = None,
    leave_out: Callable[[Path, Exception], None] | None = None,
) -> list[RunJudgement]:
    """Let every judge rank the captions for every run.

    All runs are checked before the first is judged. A folder that is given twice counts once.

    Args:
        runs: folders of runs.
        judges: models by name; by default the two in this package, which no run may have been guided by.
        leave_out: told of each run that cannot be judged, and why, while others can; None refuses them all.

    Raises:
        WordlightError: there is no run, one (with `leave_out`, every one) cannot be read, was guided by a
            judge, or its prompt is not a caption of the world.
        OSError: likewise, a file of a run may not be read.
    """
    if not runs:
        raise WordlightError(
            "There is no run to evaluate. A pattern that matches no folder is the usual cause. Name at least "
            "one folder."
        )
    saved = _judgeable(runs, judges or dict.fromkeys(JUDGES), leave_out)
    judges = judges or {name: load(name) for name in JUDGES}
    return [judge_run(run, judges) for run in saved]


def _judgeable(
    runs: Sequence[Path],
    judges: Mapping[str, object],
    leave_out: Callable[[Path, Exception], None] | None,
) -> list[SavedRun]:
    folders = list({folder.resolve(): folder for folder in reversed(runs)}.values())[::-1]
    saved: list[SavedRun] = []
    for folder in folders:
        try:
            saved.append(_read_judgeable(folder, judges))
        except (WordlightError, OSError) as error:
            if leave_out is None or len(folders) == 1:
                raise
            leave_out(folder, error)
    if not saved:
        raise WordlightError(
            f"None of the {len(folders)} folders holds a run that can be judged. A pattern that matches "
            "other folders is the usual cause. The reason of each was given; name at least one folder that "
            "`wordlight dream` wrote."
        )
    return saved


def _read_judgeable(folder: Path, judges: Mapping[str, object]) -> SavedRun:
    run = SavedRun.read(folder)
    true_captions(run.config.prompt)
    _check_guide(folder, run.config, judges)
    return run


def true_captions(prompt: str) -> tuple[str, str]:
    """Return the caption of a prompt among all captions, or among those of kinds alone, and its kind's
    caption.

    Raises:
        WordlightError: the prompt is not one that the world's captions could mean.
    """
    read = words(prompt)
    kinds, colours = (sum(w in names for w in read) for names in (KIND_NAMES, COLOUR_NAMES))
    strange = [word for word in read if word not in VOCABULARY]
    if strange or kinds != 1 or colours > 1:
        reason = f"has words outside the world: {', '.join(strange)}" if strange else "does not"
        raise WordlightError(
            f"The prompt {prompt!r} cannot be judged: it has to name one kind of object, and at most one "
            f"colour, and {reason}. The judges rank captions of the embedded world and know no others. "
            "Evaluate runs of prompts such as "
            '"a yellow bulldozer" or "a chair".'
        )
    kind, colour = claims(prompt)
    plain = kind_caption(str(kind))
    return fill("a {colour} {kind}", kind=str(kind), colour=colour) if colour else plain, plain


def judge_run(run: SavedRun, judges: Mapping[str, ClipModel]) -> RunJudgement:
    """Let every judge rank the captions for one run."""
    prompt, steps = run.config.prompt, run.config.steps
    caption, plain_caption = true_captions(prompt)
    kinds = kind_captions()
    captions = kinds if caption == plain_caption else all_captions()
    coloured, plain = portraits(run.config, run.field)
    judgements = {
        name: Judgement(rank(judge, coloured, captions, caption), rank(judge, plain, kinds, plain_caption))
        for name, judge in judges.items()
    }
    folder = str(run.folder)
    return RunJudgement(folder, prompt, caption, plain_caption, judgements, run.status, run.step, steps)


def portraits(
    config: RunConfig, field: PyramidField
) -> tuple[Float[Array, "views height width 3"], Float[Array, "views height width 3"]]:
    """Return the held-out views in colour, and without texture: light grey, shaded by the normals of the
    density.

    Both stand before plain mid-grey. Twice the judges' size, so that their preprocessing smooths edges.
    """
    cameras = held_out_cameras(config.cameras, size=SIZE)
    seen = render_views(finished(field), cameras, samples=SAMPLES, normals=True)
    return seen.colour, shade(seen, background=GREY)


def rank(
    judge: ClipModel, images: Float[Array, "views height width 3"], captions: Sequence[str], true: str
) -> Ranking:
    """Rank captions by their cosine with the mean of the images' embeddings; a tie counts against the true
    one."""
    scores = _scores(judge, images, judge.encode_text(list(captions)))
    index = list(captions).index(true)
    others = [i for i in range(len(captions)) if i != index]
    ahead = sum(not scores[i] < scores[index] for i in others)
    top = captions[max(range(len(captions)), key=lambda i: (scores[i], i != index))]
    return Ranking(top, 1 + ahead, len(captions))


def _scores(judge: ClipModel, images: Array, texts: Array) -> list[float]:
    embeds = _encode(judge.without_text(), images)
    return (texts @ jnp.mean(embeds, axis=0)).tolist()


@jax.jit
def _encode(judge: ClipModel, images: Float[Array, "views height width 3"]) -> Float[Array, "views e"]:
    return judge.encode_image(images)


def _check_guide(folder: Path, config: RunConfig, judges: Mapping[str, object]) -> None:
    own = [name for name in config.models if name in judges]
    if own:
        raise WordlightError(
            f"The run in {folder} was guided by {own[0]!r}, which is one of its judges. A judge always "
            "agrees with what it made itself. Evaluate runs that another model guided, such as demo."
        )


def precisions(results: Sequence[RunJudgement]) -> dict[str, dict[str, Precision]]:
    """Return colour and geometry precision by judge, and under `"both"` where all judges are right."""
    count = len(results)
    table = {
        name: {
            "colour": Precision(sum(r.judges[name].colour.right for r in results), count),
            "geometry": Precision(sum(r.judges[name].geometry.right for r in results), count),
        }
        for name in results[0].judges
    }
    both = {
        "colour": Precision(sum(r.colour_right for r in results), count),
        "geometry": Precision(sum(r.geometry_right for r in results), count),
    }
    return table | {"both": both}


def as_json(results: Sequence[RunJudgement]) -> dict[str, object]:
    """Return everything as plain values: the precisions with their standard errors, then every run."""
    summary = {
        judge: {
            what: {
                "precision": p.value,
                "standard_error": p.standard_error,
                "right": p.right,
                "runs": p.runs,
            }
            for what, p in row.items()
        }
        for judge, row in precisions(results).items()
    }
    runs = [
        {
            "run": result.run,
            "prompt": result.prompt,
            "caption": result.caption,
            "status": result.status,
            "step": result.step,
            "right": result.colour_right,
            "geometry_right": result.geometry_right,
            "judges": {
                name: {"colour": vars(j.colour), "geometry": vars(j.geometry)}
                for name, j in result.judges.items()
            },
        }
        for result in results
    ]
    return {"precision": summary, "runs": runs}
