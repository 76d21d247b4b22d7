"""Every configuration that open_clip lists, cut to two layers: `python -m parity.open_clip_models`.

open_clip writes each with random weights, Wordlight reads them, and embeddings, logits and the gradient of a
logit at the pixels are compared; or Wordlight refuses it by name. `--docs FILE` writes the table. Widths,
heads, image size, activation and pooling are the configuration's own; its depth and vocabulary are cut.
"""

import argparse
import copy
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import open_clip
import timm

from parity.tower_cases import (
    LIMIT,
    OUTPUTS,
    Arrays,
    inputs,
    ours,
    reference,
    relative_error,
    write_open_clip,
)
from wordlight.clip.config import ClipConfig, ResNetConfig, VitConfig
from wordlight.clip.config_open_clip import open_clip_config
from wordlight.clip.load import LoadOptions, open_clip_params
from wordlight.clip.model import ClipModel
from wordlight.clip.processing import read_processing
from wordlight.errors import WordlightError

LAYERS = 2
VOCABULARY = 2000
EXACT_LIMIT = 1e-7  # the reference is rounded to float32 at the end
Json = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What became of one configuration: relative errors, or the reason it was refused for.

    Attributes:
        name: as open_clip lists it.
        family: kind of towers.
        values: error of embeddings and logits; None if it was refused.
        gradient: error of the gradient at the pixels.
        exact: largest error in float64, looked at where one of these is above the limit.
        reason: why it was refused.
    """

    name: str
    family: str
    values: float | None = None
    gradient: float = 0.0
    exact: float | None = None
    reason: str = ""

    def agrees(self) -> bool:
        """Return whether it was read and gives open_clip's numbers, in float32 or else in float64."""
        if self.values is None:
            return False
        within = max(self.values, self.gradient) <= LIMIT
        return within or (self.exact is not None and self.exact <= EXACT_LIMIT)

    def shown(self) -> str:
        """Return the errors, or that it was refused."""
        if self.values is None:
            return "refused"
        exact = "" if self.exact is None else f" (in float64 {self.exact:.1e})"
        return f"{self.values:.1e} | {self.gradient:.1e}{exact}"


def family(config: Json) -> str:
    """Return what kind of towers a configuration asks for."""
    vision, text = config["vision_cfg"], config["text_cfg"]
    if text.get("hf_model_name") is not None:
        return "text tower of transformers"
    if "multimodal_cfg" in config:
        return "CoCa"
    name = vision.get("timm_model_name")
    if name is None:
        return "ResNet" if isinstance(vision.get("layers"), list) else "ViT"
    return "SigLIP" if "siglip" in name else f"timm {name.split('_')[0]}"


def cut(config: Json) -> Json:
    """Return a configuration of few layers and words."""
    config = copy.deepcopy(config)
    vision, text = config["vision_cfg"], config["text_cfg"]
    if isinstance(vision.get("layers"), list):
        vision["layers"] = [1, 1, 1, 1]
    elif not vision.get("timm_model_name"):
        vision["layers"] = LAYERS
    text |= {"layers": LAYERS, "vocab_size": VOCABULARY}
    if "multimodal_cfg" in config:
        config["multimodal_cfg"] |= {"layers": 1, "vocab_size": VOCABULARY}
    return config


@contextmanager
def shallow_timm() -> Iterator[None]:
    """Let timm build its towers with few layers."""
    with mock.patch.object(timm, "create_model", partial(timm.create_model, depth=LAYERS)):
        yield


def read(folder: Path) -> ClipModel:
    """Let Wordlight read it; a name of timm says nothing of layers, so they are cut here."""
    found = read_processing(folder)
    found = found._replace(config=replace(found.config, vision=_shallow(found.config)))
    params = open_clip_params(folder, found, LoadOptions())
    return ClipModel(params, found.config, found.image_spec)


def _shallow(config: ClipConfig) -> VitConfig | ResNetConfig:
    vision = config.vision
    if isinstance(vision, ResNetConfig):
        return vision
    return replace(vision, transformer=replace(vision.transformer, layers=LAYERS))


def check(name: str) -> Outcome:
    """Compare one configuration, or let it be refused."""
    config = cut(open_clip.get_model_config(name))
    kind = family(config)
    try:
        open_clip_config({"model_cfg": config})
    except WordlightError as error:
        return Outcome(name, kind, reason=str(error).split(". ")[0])
    with tempfile.TemporaryDirectory() as name_of_folder, shallow_timm():
        folder = Path(name_of_folder)
        write_open_clip(config, folder)
        model = read(folder)
        given = full_length(inputs(model), model)
        expected = reference(folder, given)
        errors = all_errors(ours(model, given), expected)
        gradient = errors.pop("gradient")
        exact = None
        if max(gradient, *errors.values()) > LIMIT:
            exact = max(all_errors(in_float64(model, given), expected).values())
    return Outcome(name, kind, max(errors.values()), gradient, exact)


def all_errors(values: Arrays, expected: Arrays) -> dict[str, float]:
    """Return the relative errors of embeddings, logits and gradient."""
    return {key: relative_error(values[key], expected[key]) for key in OUTPUTS}


def in_float64(model: ClipModel, given: Arrays) -> Arrays:
    """Return what Wordlight computes in float64 from the same weights."""
    with jax.enable_x64(True):
        wide = model.replace_params(jax.tree.map(lambda x: x.astype(jnp.float64), model.params))
        return ours(wide, given | {"pixels": given["pixels"].astype(np.float64)})


def full_length(given: Arrays, model: ClipModel) -> Arrays:
    """Fill the ids up to the context length: some of open_clip's text towers take no shorter ones."""
    assert model.config.text is not None
    more = [(0, 0), (0, model.config.text.context_length - given["ids"].shape[1])]
    return given | {name: np.pad(given[name], more) for name in ("ids", "mask")}


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as Markdown: a summary, then a row for each configuration."""
    families = sorted({o.family for o in outcomes})
    lines = ["| family | configurations | agree | refused by name |", "|---|---|---|---|"]
    for kind in families:
        rows = [o for o in outcomes if o.family == kind]
        agree = sum(o.agrees() for o in rows)
        lines.append(f"| {kind} | {len(rows)} | {agree} | {sum(o.values is None for o in rows)} |")
    agree = sum(o.agrees() for o in outcomes)
    refused = sum(o.values is None for o in outcomes)
    lines += [f"| all | {len(outcomes)} | {agree} | {refused} |", ""]
    lines += ["| configuration | family | embeddings, logits | gradient |", "|---|---|---|---|"]
    lines += [f"| {o.name} | {o.family} | {o.shown()} |{' |' * (o.values is None)}" for o in outcomes]
    return "\n".join(lines)


def page(outcomes: list[Outcome]) -> str:
    """Return the page of the docs."""
    return f"""# OpenCLIP's configurations

`python -m parity.open_clip_models --docs docs/open_clip.md` cuts every configuration that open_clip
{open_clip.__version__} lists to {LAYERS} layers (one block a stage for a ResNet) and {VOCABULARY} words,
lets open_clip write it with random weights, and reads it with Wordlight. An error is the norm of the
difference from open_clip in float64, over the norm: the largest of image and text embeddings and logits, and
that of the gradient of a logit at the pixels. It must be below {LIMIT:.0e}. Random weights make a ResNet
magnify rounding, in open_clip's own float32 as well: a rectifier's slope jumps at zero, and a few of millions
take the other side. Where an error is above the limit, the same weights are compared in float64, and all
errors must be below {EXACT_LIMIT:.0e}. Configurations that are not done are refused by the name of the entry.

{table(outcomes)}
"""


def main() -> int:
    """Check all configurations, print the table, and return 1 where one disagrees."""
    parser = argparse.ArgumentParser(prog="python -m parity.open_clip_models", description=__doc__)
    parser.add_argument("--docs", type=Path, help="write the page of the docs here")
    parser.add_argument("--only", default="", help="only configurations whose name holds this text")
    options = parser.parse_args()
    outcomes = []
    for name in (n for n in open_clip.list_models() if options.only in n):
        outcome = check(name)
        print(f"{name} ({outcome.family}): {outcome.reason or outcome.shown()}", flush=True)
        outcomes.append(outcome)
    if options.docs:
        options.docs.write_text(page(outcomes), encoding="utf-8")
    return int(any(o.values is not None and not o.agrees() for o in outcomes))


if __name__ == "__main__":
    raise SystemExit(main())
