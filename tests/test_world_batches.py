"""The batches that the shipped models are trained on: every claim about the world, and which are true."""

import jax
import jax.numpy as jnp
import numpy as np

from wordlight.data.world.batches import (
    NO_COLOUR,
    Subjects,
    draw_captions,
    draw_guide_captions,
    draw_pictures,
    guide_truth_weights,
    truth_weights,
)
from wordlight.data.world.captions import claims
from wordlight.data.world.colours import COLOUR_NAMES
from wordlight.data.world.distorted import DISTORTED_CAPTIONS
from wordlight.data.world.objects import KIND_NAMES

CAR, RED = KIND_NAMES.index("car"), COLOUR_NAMES.index("red")


def subjects(*entries: tuple[int, int]) -> Subjects:
    kinds, colours = np.array(entries).T
    return Subjects(kinds, np.zeros(len(entries), int), colours)


def test_a_batch_has_a_caption_for_every_claim_in_order():
    named = [claims(text) for text in draw_captions(np.random.default_rng(0))]
    both = [(kind, colour) for kind in KIND_NAMES for colour in COLOUR_NAMES]
    kinds, colours = [(kind, None) for kind in KIND_NAMES], [(None, colour) for colour in COLOUR_NAMES]
    assert named == both + kinds + colours + 4 * [(None, None)]


def test_a_red_car_is_a_red_car_a_car_and_something_red():
    truth = truth_weights(subjects((CAR, RED)), np.array([], int))
    texts = draw_captions(np.random.default_rng(1))
    assert truth.shape == (1, len(texts))
    found = {claims(texts[i]): truth[0, i] for i in np.flatnonzero(truth)}
    assert found == {("car", "red"): 4.0, ("car", None): 1.0, (None, "red"): 1.0}


def test_an_untextured_object_is_only_of_its_kind():
    truth = truth_weights(subjects((CAR, NO_COLOUR), (CAR, RED)), np.array([], int))
    assert np.flatnonzero(truth[0]).tolist() == [240 + CAR]
    assert np.count_nonzero(truth[1]) == 3


def test_distractors_come_last_and_are_of_their_class():
    truth = truth_weights(subjects((CAR, RED)), np.array([2, 0]))
    assert [np.flatnonzero(row).tolist() for row in truth[1:]] == [[240 + 34 + 2], [240 + 34]]


def test_a_guide_also_learns_the_side_and_that_a_thing_is_distorted():
    rng = np.random.default_rng(2)
    texts = draw_captions(rng) + draw_guide_captions(rng)
    shares = np.array([[0.25, 0.75, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    batch = subjects((CAR, RED), (CAR, NO_COLOUR), (CAR, RED))
    truth = guide_truth_weights(batch, shares, np.array([1]), 1)
    assert truth.shape == (4, len(texts))

    def found(row):
        named = {i: (*claims(texts[i]), texts[i].rpartition(", ")[2]) for i in np.flatnonzero(truth[row])}
        return {claim: truth[row, i] for i, claim in named.items() if i >= len(draw_captions(rng))}

    assert found(0) == {
        ("car", "red", "front view"): 1.0,
        ("car", "red", "side view"): 3.0,
        ("car", None, "front view"): 0.25,
        ("car", None, "side view"): 0.75,
    }
    assert found(1) == {("car", None, "back view"): 1.0}
    # The last object is distorted: nothing else is true of it. The distractor after it is no object.
    assert np.flatnonzero(truth[2]).tolist() == [len(texts) - 1]
    assert texts[-1] in DISTORTED_CAPTIONS
    assert found(3) == {}
    np.testing.assert_array_equal(truth[3, : len(draw_captions(rng))], truth_weights(batch, np.array([1]))[3])


def test_pictures_are_finite_and_differ_by_key():
    gbuffers = jnp.zeros((3, 64, 64, 6), jnp.uint8)
    draw = [
        draw_pictures(jax.random.key(seed), gbuffers, jnp.array([0, 5, NO_COLOUR]), distractor_count=2)
        for seed in (0, 0, 1)
    ]
    pictures = [np.asarray(pictures) for pictures, _ in draw]
    assert pictures[0].shape == (5, 64, 64, 3)
    assert np.isfinite(pictures[0]).all()
    np.testing.assert_array_equal(pictures[0], pictures[1])
    assert np.abs(pictures[0] - pictures[2]).max() > 0.1
