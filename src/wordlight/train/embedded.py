"""The models this package ships, and the command that makes them again: `python -m wordlight.train.embedded
--name NAME --out DIR`.

`demo` guides; `judge-resnet` and `judge-vit` judge, and were trained from other seeds on other renders of
the world.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.layers import Params
from wordlight.clip.load import load_folder
from wordlight.clip.model import ClipModel, init_params
from wordlight.clip.preprocess import preprocess
from wordlight.clip.save import save_folder
from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.tokenizer_files import write_word_level_tokenizer
from wordlight.data.world.batches import (
    DISTORTED,
    DISTRACTORS,
    draw_captions,
    draw_guide_captions,
    draw_pictures,
    draw_subjects,
    guide_truth_weights,
    truth_weights,
)
from wordlight.data.world.captions import GUIDE_WORDS, VOCABULARY, all_captions
from wordlight.data.world.colours import COLOUR_NAMES
from wordlight.data.world.compose import compose
from wordlight.data.world.dataset import render_table, table_shares
from wordlight.data.world.distorted import distort
from wordlight.data.world.trace import SIZE
from wordlight.train.contrastive import Batch, TrainState, make_optimizer, train_step
from wordlight.train.norm_statistics import with_statistics

CONTEXT_LENGTH = 12
EMBED_DIM = 64
HELD_OUT_SEED, HELD_OUT_VIEWS = 100, 100
LOG_EVERY = 100
SAVE_EVERY = 1000
REFINING_RATE = 0.3  # of the first course's
REFINING_SEED = 100  # added to the recipe's for each course


@dataclass(frozen=True)
class Recipe:
    """How one embedded model is made.

    Attributes:
        name: folder of the checkpoint.
        vision: the image tower.
        seed: of the weights and the batches.
        table_seed: of the traced views.
        views: traced views of each kind.
        steps: optimiser steps.
        refining: optimiser steps of a second course.
        batch: pictures a step.
        radius: largest adversarial displacement, in normalised pixels (L2), on every second step; 0 for none.
        calm: share of the steps before the first adversarial one.
        guides: whether captions also say from which side an object is seen, and pictures also show objects
            put together wrongly.
    """

    name: str
    vision: VitConfig | ResNetConfig
    seed: int
    table_seed: int
    views: int
    steps: int
    refining: int = 1500
    batch: int = 128
    radius: float = 0.0
    calm: float = 0.35
    guides: bool = False

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words that the model knows."""
        return (*VOCABULARY, *GUIDE_WORDS) if self.guides else VOCABULARY


def vit(width: int, layers: int) -> VitConfig:
    """Return a small ViT with patches of 16 pixels."""
    return VitConfig((SIZE, SIZE), 16, TransformerConfig(width, layers, width // 32, 4 * width))


RESNET = ResNetConfig((SIZE, SIZE), (1, 1, 1, 1), 16, 8)

RECIPES = (
    Recipe("demo", vit(128, 4), seed=1, table_seed=1, views=1000, steps=5000, radius=8.0, guides=True),
    Recipe(
        "demo-resnet",
        RESNET,
        seed=4,
        table_seed=1,
        views=1000,
        steps=2500,
        batch=96,
        radius=8.0,
        guides=True,
    ),
    Recipe(
        "judge-resnet",
        RESNET,
        seed=2,
        table_seed=3,
        views=800,
        steps=2500,
        batch=96,
    ),
    Recipe("judge-vit", vit(128, 4), seed=3, table_seed=3, views=800, steps=5000),
)


def make_config(recipe: Recipe, vocab_size: int) -> ClipConfig:
    """Return the configuration of a recipe's model."""
    activation = "gelu" if isinstance(recipe.vision, ResNetConfig) else "quick_gelu"
    transformer = TransformerConfig(64, 2, 2, 256, activation)
    text = TextConfig(vocab_size, CONTEXT_LENGTH, transformer, end_id=None)
    return ClipConfig(EMBED_DIM, recipe.vision, text)


def batches(
    recipe: Recipe,
    tokenizer: Tokenizer,
    table: UInt8[np.ndarray, "k v h w 6"],
    spec: ImageSpec,
) -> Iterator[Batch]:
    """Yield training batches for ever; the same recipe yields the same ones."""
    rng, key = np.random.default_rng(recipe.seed), jax.random.key(recipe.seed, impl="rbg")
    others = round(recipe.batch * DISTRACTORS)
    distorted = round(recipe.batch * DISTORTED) if recipe.guides else 0
    shares = table_shares(recipe.table_seed, table.shape[1]) if recipe.guides else None
    while True:
        key, picture_key = jax.random.split(key)
        subjects = draw_subjects(rng, recipe.batch - others, table.shape[1])
        gbuffers = jnp.asarray(table[subjects.kind, subjects.view])
        if distorted:
            spoilt = distort(jax.random.fold_in(picture_key, 1), gbuffers[-distorted:])
            gbuffers = gbuffers.at[-distorted:].set(spoilt)
        pictures, classes = draw_pictures(
            picture_key, gbuffers, jnp.asarray(subjects.colour), distractor_count=others
        )
        pixels = preprocess(pictures, spec, value_range="unit")
        captions = draw_captions(rng)
        if shares is None:
            truth = truth_weights(subjects, np.asarray(classes))
        else:
            captions += draw_guide_captions(rng)
            seen = shares[subjects.kind, subjects.view]
            truth = guide_truth_weights(subjects, seen, np.asarray(classes), distorted)
        yield Batch(pixels, jnp.asarray(tokenizer(captions).ids), jnp.asarray(truth, jnp.float32))


def train(
    recipe: Recipe, tokenizer: Tokenizer, *, cache: Path | None, start: ClipModel | None = None
) -> Iterator[tuple[int, ClipModel]]:
    """Train a recipe's model, from `start` if that is given; yield it every thousand steps and at the end,
    and print a line every hundred."""
    config = make_config(recipe, tokenizer.backend.get_vocab_size())
    spec = ImageSpec((SIZE, SIZE))
    table = np.asarray(render_table(recipe.table_seed, recipe.views, cache=cache))
    optimizer = make_optimizer(recipe.steps, rate=1.0 if start is None else REFINING_RATE)
    params = init_params(jax.random.key(recipe.seed), config)
    if start is not None:
        params = with_words(start, params, tokenizer)
    state = TrainState(params, optimizer.init(params), jnp.zeros((), jnp.int32))
    # Copies, as donated buffers must be distinct, of strong type, as weak ones would compile the step again.
    state = jax.tree.map(lambda x: jnp.array(x, x.dtype), state)
    stream = batches(recipe, tokenizer, table, spec)
    for step, params in _run(recipe, config, optimizer, state, stream):
        params = with_statistics(params, config, [next(stream).pixels for _ in range(16)])
        yield step, ClipModel(params, config, spec, tokenizer)


def with_words(start: ClipModel, fresh: Params, tokenizer: Tokenizer) -> Params:
    """Return the weights of a model for a tokenizer that knows more words, whose rows are the fresh ones."""
    assert start.tokenizer is not None
    before, now = (t.backend.get_vocab() for t in (start.tokenizer, tokenizer))
    rows = np.array(fresh["text"]["tokens"])
    for word, row in before.items():
        rows[now[word]] = start.params["text"]["tokens"][row]
    return start.params | {"text": start.params["text"] | {"tokens": jnp.asarray(rows)}}


def _run(
    recipe: Recipe,
    config: ClipConfig,
    optimizer: optax.GradientTransformation,
    state: TrainState,
    stream: Iterator[Batch],
) -> Iterator[tuple[int, Params]]:
    start, recent = time.monotonic(), []
    for step, key in enumerate(jax.random.split(jax.random.key(recipe.seed + 1000), recipe.steps)):
        attacked = step % 2 == 1 and step >= recipe.calm * recipe.steps
        radius = jnp.float32(recipe.radius if attacked else 0.0)
        state, metrics = train_step(
            state, next(stream), key, radius=radius, config=config, optimizer=optimizer
        )
        recent.append(metrics)
        if (step + 1) % LOG_EVERY == 0:
            loss, accuracy = (float(np.mean([np.asarray(m[i]) for m in recent])) for i in range(2))
            seconds = time.monotonic() - start
            print(f"step {step + 1}: loss {loss:.3f}, accuracy {accuracy:.3f}, {seconds:.0f} s", flush=True)
            recent.clear()
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == recipe.steps:
            yield step + 1, state.params


def held_out_accuracy(
    model: ClipModel, table: UInt8[np.ndarray, "k v h w 6"], *, key: PRNGKeyArray, chunk: int = 240
) -> Float[np.ndarray, "k v"]:
    """Return, for every held-out view in a random colour before a random background, whether its caption
    wins.

    The caption competes against all object and colour captions.
    """
    kinds, views = table.shape[:2]
    texts = model.encode_text(all_captions())
    rank = jax.jit(lambda m, images: jnp.argmax(m.encode_image(images) @ texts.T, axis=-1))
    hits = []
    flat = table.reshape(-1, *table.shape[2:])
    for start in range(0, len(flat), chunk):
        key, colour_key, picture_key = jax.random.split(key, 3)
        part = flat[start : start + chunk]
        colour = jax.random.randint(colour_key, (len(part),), 0, len(COLOUR_NAMES))
        kind: Array = jnp.arange(start, start + len(part)) // views
        best = rank(model, compose(picture_key, jnp.asarray(part), colour))
        hits.append(np.asarray(best == kind * len(COLOUR_NAMES) + colour))
    return np.concatenate(hits).reshape(kinds, views)


def _report(name: str, after: str, model: ClipModel, held_out: UInt8[np.ndarray, "k v h w 6"]) -> float:
    accuracy = float(held_out_accuracy(model, held_out, key=jax.random.key(0)).mean())
    print(f"{name} {after}: held-out accuracy {accuracy:.4f}", flush=True)
    return accuracy


def remake(
    name: str,
    out: Path,
    *,
    steps: int | None = None,
    refine: int = 0,
    measure: bool = False,
    cache: Path | None = None,
) -> float:
    """Train one embedded model, save it and return its held-out accuracy.

    Args:
        name: `demo`, `demo-resnet`, `judge-resnet` or `judge-vit`.
        out: folder that gets a folder of that name.
        steps: optimiser steps instead of the recipe's.
        refine: go on from the model in that folder, at a lower rate. The number of the course, from 1,
            draws its batches, so that a second one sees others than the first.
        measure: train nothing, only measure the model in that folder.
        cache: folder that keeps traced views.
    """
    recipe = next(r for r in RECIPES if r.name == name)
    folder, start = out / name, None
    held_out = np.asarray(render_table(HELD_OUT_SEED, HELD_OUT_VIEWS, cache=cache))
    if measure:
        return _report(name, "as it is", load_folder(folder), held_out)
    if refine:
        start = load_folder(folder)
        recipe = replace(recipe, seed=recipe.seed + REFINING_SEED * refine, calm=0.0, steps=recipe.refining)
    recipe = recipe if steps is None else replace(recipe, steps=steps)
    folder.mkdir(parents=True, exist_ok=True)
    write_word_level_tokenizer(folder, recipe.vocabulary, CONTEXT_LENGTH)
    tokenizer = Tokenizer.from_folder(folder)
    accuracy = 0.0
    for step, model in train(recipe, tokenizer, cache=cache, start=start):
        save_folder(folder, model, dtype=np.float16)
        accuracy = _report(name, f"after {step} steps", model, held_out)
    return accuracy


def main() -> None:
    """Run `remake` from the command line."""
    import tyro

    tyro.cli(remake)


if __name__ == "__main__":
    main()
