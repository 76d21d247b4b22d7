"""The training step that started this project, run as its author wrote it (`programs/question_step.py`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from wordlight.clip.config import ClipConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.model import ClipModel, init_params
from wordlight.clip.save import save_folder
from wordlight.clip.tokenizer_files import clip_bpe

PROGRAM = Path(__file__).parent / "programs" / "question_step.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XLA_FLAGS": ""}  # the program makes its own two devices
    return subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A random CLIP with ViT-B/32's input and thin towers, whose tokenizer knows letters only."""
    folder = tmp_path_factory.mktemp("random-clip")
    vocabulary = byte_vocabulary()
    clip_bpe(vocabulary, []).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 77}))
    blocks = TransformerConfig(width=64, layers=2, heads=2, mlp_width=128)
    config = ClipConfig(
        embed_dim=64,
        vision=VitConfig((224, 224), 32, blocks),
        text=TextConfig(len(vocabulary), 77, blocks, end_id=len(vocabulary) - 1),
    )
    clip = ClipModel(init_params(jax.random.key(0), config), config, ImageSpec((224, 224)))
    save_folder(folder, clip)
    return folder


def byte_vocabulary() -> dict[str, int]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return {token: number for number, token in enumerate(tokens)}


def test_it_runs_on_a_checkpoint_in_hugging_face_layout(checkpoint):
    done = run(str(checkpoint))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert done.stdout.count("ok ") == 8


def test_it_runs_on_the_embedded_model():
    done = run("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == 8
