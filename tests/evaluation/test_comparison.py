import numpy as np
import pytest

import keras_caption as kc
from keras_caption.evaluation.comparison import Difference, crossed_error

SIMULATIONS = 2000
# Deviations of scores: of the two models' seeds, and of an item's difference and of
# what neither explains, over the root of the number of items.
DEVIATIONS = {
    "seeds": (1.0, 1.0, 0.1, 0.3),
    "one model's seeds": (0.5, 1.5, 0.3, 1.0),
    "items": (0.3, 0.3, 1.0, 1.0),
    "neither": (0.0, 0.0, 0.1, 1.0),
}


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("name", DEVIATIONS)
def test_intervals_hold_the_truth_in_95_percent(rng, seeds, name):
    """Of new images and new seeds each time; a floor makes some a little wider."""
    *of_seeds, of_items, rest = DEVIATIONS[name]
    items, truth = 40, 0.7
    of_items, rest = of_items * items**0.5, rest * items**0.5
    common = rng.normal(0, 50, (SIMULATIONS, 1, items))
    values = [
        common
        + rng.normal(0, deviation, (SIMULATIONS, seeds, 1))
        + rng.normal(0, of_items / 2**0.5, (SIMULATIONS, 1, items))
        + rng.normal(0, rest, (SIMULATIONS, seeds, items))
        for deviation in of_seeds
    ]
    held = 0
    for x, y in zip(*values, strict=True):
        found = Difference(x.mean() - y.mean() + truth, *crossed_error(x, y), items, 1)
        held += found.low < truth < found.high
    assert 0.94 <= held / SIMULATIONS <= 0.99, held


def test_the_smallest_effect_is_found_by_four_of_five(rng):
    runs = rng.normal(size=(SIMULATIONS, 2, 5, 40))
    runs += rng.normal(size=(SIMULATIONS, 2, 5, 1))
    found = [
        Difference(x.mean() - y.mean(), *crossed_error(x, y), 40, True) for x, y in runs
    ]
    smallest = np.mean([x.smallest_effect for x in found])
    share = np.mean([abs(x.mean + smallest) > x.high - x.mean for x in found])
    assert share == pytest.approx(0.8, abs=0.04)
    false = np.mean([x.p_value < 0.05 for x in found])
    assert false == pytest.approx(np.mean([x.low > 0 or x.high < 0 for x in found]))
    assert false == pytest.approx(0.05, abs=0.02)


def test_items_that_both_have_are_compared(rng):
    values = rng.normal(size=50)
    run = {i: (x, 1) for i, x in enumerate(values)}
    other = {i: (x - 0.5, 1) for i, x in enumerate(values[:40])}
    found = kc.evaluation.paired_difference([run], [other])
    assert (found.verdict, found.items, found.has_seeds) == ("higher", 40, False)
    for end in (found.mean, found.low, found.high):
        assert end == pytest.approx(0.5)


def test_a_score_of_sums_is_compared_by_what_items_change(rng):
    """A ratio of sums, by the deviation that the delta method gives it."""
    weights = rng.integers(5, 15, 400)
    runs = [weights * rng.normal(mean, 1, 400) for mean in (0.5, 0.0)]
    found = kc.evaluation.paired_difference(
        *([dict(enumerate(zip(run, weights, strict=True)))] for run in runs)
    )
    means = [run.sum() / weights.sum() for run in runs]
    assert found.mean == pytest.approx(means[0] - means[1])
    first, second = (
        (run - mean * weights) / weights.mean()
        for run, mean in zip(runs, means, strict=True)
    )
    error = (first - second).std(ddof=1) / 20
    assert found.error == pytest.approx(error, rel=0.01)
