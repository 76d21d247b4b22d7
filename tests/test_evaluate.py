"""R-Precision: which captions are ranked, how, and what counts as right."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tiny_runs import save_tiny_model, save_tiny_run
from wordlight import evaluate as module
from wordlight.data.world.captions import all_captions, kind_captions
from wordlight.errors import WordlightError
from wordlight.evaluate import (
    Judgement,
    Precision,
    Ranking,
    RunJudgement,
    as_json,
    evaluate,
    precisions,
    rank,
    true_captions,
)


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("judge") / "model")


@pytest.fixture(scope="module")
def images():
    return jax.random.uniform(jax.random.key(4), (3, 20, 20, 3))


@pytest.mark.parametrize(
    ("prompt", "caption", "kind"),
    [
        ("a yellow bulldozer", "a yellow bulldozer", "a bulldozer"),
        ("A photo of the RED car", "a red car", "a car"),
        ("chair in orange", "an orange chair", "a chair"),
        ("a toy mushroom", "a mushroom", "a mushroom"),
    ],
)
def test_a_prompt_is_judged_by_its_canonical_caption(prompt, caption, kind):
    assert true_captions(prompt) == (caption, kind)
    assert caption in all_captions() + kind_captions()


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("a red dragon", "words outside the world: dragon"),
        ("something red", "one kind of object"),
        ("a red car and a chair", "words outside the world: and"),
        ("a car chair", "one kind of object"),
        ("a red blue car", "at most one colour"),
        ("smoke", "one kind of object"),
    ],
)
def test_a_prompt_outside_the_captions_is_refused_with_the_reason(prompt, message):
    with pytest.raises(WordlightError, match=message):
        true_captions(prompt)


def test_captions_are_ranked_by_the_mean_of_the_views_embeddings(judge, images):
    captions = kind_captions()
    scores = judge.encode_text(captions) @ judge.encode_image(images).mean(axis=0)
    order = [captions[int(i)] for i in np.argsort(-np.asarray(scores))]
    for place, caption in ((1, order[0]), (2, order[1]), (24, order[-1])):
        assert rank(judge, images, captions, caption) == Ranking(order[0], place, 24)


def test_a_judge_that_cannot_tell_is_not_right(judge, images):
    blind = judge.replace_params(jax.tree.map(jnp.zeros_like, judge.params))
    ranking = rank(blind, images, ["a car", "a chair"], "a car")
    assert (ranking.rank, ranking.top, ranking.right) == (2, "a chair", False)


def test_a_judge_that_sees_nothing_finite_is_not_right(judge, images):
    ranking = rank(judge, images * jnp.nan, ["a car", "a chair"], "a car")
    assert not ranking.right


def judgement(*right):
    """One run's judgement by two judges: colour and geometry of each, right or not."""
    ranks = [Ranking("a car" if r else "a cat", 1 if r else 5, 24) for r in right]
    judges = {"one": Judgement(ranks[0], ranks[1]), "two": Judgement(ranks[2], ranks[3])}
    return RunJudgement("run", "a red car", "a red car", "a car", judges)


def test_a_run_counts_when_both_judges_are_right():
    results = [
        judgement(True, True, True, False),
        judgement(True, False, False, False),
        judgement(False, True, True, True),
        judgement(True, True, True, True),
    ]
    table = precisions(results)
    assert (table["one"]["colour"].right, table["two"]["colour"].right) == (3, 3)
    assert (table["both"]["colour"].right, table["both"]["geometry"].right) == (2, 2)
    assert as_json(results)["precision"]["both"]["colour"] == {
        "precision": 0.5,
        "standard_error": 0.25,
        "right": 2,
        "runs": 4,
    }


@pytest.mark.parametrize(("right", "runs", "error"), [(12, 24, 0.10206), (6, 24, 0.08839), (0, 24, 0.0)])
def test_the_standard_error_of_a_proportion(right, runs, error):
    assert Precision(right, runs).standard_error == pytest.approx(error, abs=1e-5)


def test_runs_are_judged_in_colour_and_by_shape(judge, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SIZE", 16)
    monkeypatch.setattr(module, "SAMPLES", 8)
    save_tiny_run(tmp_path / "red", "a red car")
    save_tiny_run(tmp_path / "plain", "a car")
    results = evaluate([tmp_path / "red", tmp_path / "plain"], judges={"one": judge, "two": judge})
    assert [r.caption for r in results] == ["a red car", "a car"]
    counts = [[(j.colour.captions, j.geometry.captions) for j in r.judges.values()] for r in results]
    assert counts == [[(240, 24), (240, 24)], [(24, 24), (24, 24)]]
    told = json.loads(json.dumps(as_json(results)))
    assert [run["prompt"] for run in told["runs"]] == ["a red car", "a car"]


def test_all_runs_are_checked_before_the_first_is_judged(judge, tmp_path):
    save_tiny_run(tmp_path / "good", "a red car")
    save_tiny_run(tmp_path / "bad", "something red")
    with pytest.raises(WordlightError, match="something red"):
        evaluate([tmp_path / "good", tmp_path / "bad"], judges={"one": judge})
    with pytest.raises(WordlightError, match="There is no run"):
        evaluate([])


def test_a_run_guided_by_a_judge_is_refused(tmp_path):
    save_tiny_run(tmp_path / "run", "a red car", model="judge-vit")
    with pytest.raises(WordlightError, match="guided by 'judge-vit', which is one of its judges"):
        evaluate([tmp_path / "run"])
