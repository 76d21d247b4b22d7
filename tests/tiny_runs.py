"""A guide and a run so small that a step takes no time: random weights, the world's words, 16 pixels."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jax
from rich.console import Console

from wordlight.clip.config import ClipConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.model import ClipModel, init_params
from wordlight.clip.save import save_folder
from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.tokenizer_files import write_word_level_tokenizer
from wordlight.data.world.captions import VOCABULARY
from wordlight.radiance.pyramid import PyramidConfig
from wordlight.train import run_file
from wordlight.train.checkpoint import Checkpoints
from wordlight.train.config import CameraConfig, RunConfig
from wordlight.train.dream import Summary
from wordlight.train.results import ResultConfig
from wordlight.train.state import init_state

RUN = RunConfig(
    "a red car",
    steps=8,
    views=2,
    cameras=CameraConfig(size=16, samples=8),
    field=PyramidConfig(resolutions=(4, 8)),
    max_skipped=2,
)
RESULTS = ResultConfig(frames=4, video_size=16, sheet_views=2, sheet_size=32, mesh_resolution=16, samples=8)


def save_tiny_model(folder: Path, words: Sequence[str] = VOCABULARY) -> ClipModel:
    """Write the guide's checkpoint, which knows these words, into a folder and return it."""
    folder.mkdir(parents=True)
    write_word_level_tokenizer(folder, words, 12)
    tokenizer = Tokenizer.from_folder(folder)
    tower = TransformerConfig(32, 1, 2, 64)
    text = TextConfig(tokenizer.backend.get_vocab_size(), 12, tower, end_id=None)
    config = ClipConfig(16, VitConfig((32, 32), 16, tower), text)
    model = ClipModel(init_params(jax.random.key(0), config), config, ImageSpec((32, 32)), tokenizer)
    save_folder(folder, model)
    return model


def save_tiny_run(folder: Path, prompt: str = "a red car", model: str = "demo") -> RunConfig:
    """Write what an evaluation reads of a run that took no step."""
    config = replace(RUN, prompt=prompt, models=(model,))
    folder.mkdir(parents=True)
    run_file.write_json(folder / run_file.NAME, Summary(config, "softmax", 1, 1).as_json())
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(init_state(jax.random.key(0), config))
    return config


def silent() -> Console:
    """Return a console that keeps what it is told."""
    return Console(file=io.StringIO(), width=300)
