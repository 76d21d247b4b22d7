"""The asker's training step on a random ViT-B/32 that transformers itself wrote, tokenizer and all."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor

from parity.text_cases import reference

PROGRAM = Path(__file__).parents[1] / "tests" / "programs" / "question_step.py"


def write_checkpoint(folder: Path) -> None:
    """Write ViT-B/32 with random weights, as `save_pretrained` does."""
    torch.manual_seed(0)
    CLIPModel(CLIPConfig()).save_pretrained(folder)
    CLIPProcessor(image_processor=CLIPImageProcessor(), tokenizer=reference()).save_pretrained(folder)


def check_live() -> dict[str, tuple[float, float]]:
    """Run the program; return (checks that failed, how many may)."""
    with tempfile.TemporaryDirectory() as name:
        write_checkpoint(Path(name))
        command = [sys.executable, str(PROGRAM), name]
        done = subprocess.run(command, env=os.environ | {"XLA_FLAGS": ""}, capture_output=True, text=True)
    print(done.stdout, done.stderr if done.returncode else "", sep="")
    return {"question-step-vit-b-32": (float(8 - done.stdout.count("ok ")), 0.0)}


if __name__ == "__main__":
    print(json.dumps(check_live()))
