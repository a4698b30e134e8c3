"""What claims.py says of an effect, by the rules of docs/results/effects.md."""

import numpy as np
import pytest
from conftest import PROJECT

from experiments import claims
from experiments.papers.claimed import EARLIER, SETTLED, Claim
from keras_caption.evaluation import Difference


def difference(mean, half):
    """A difference with an interval of so much to each side."""
    return Difference(mean, half / 1.96, 1e9, 500, True)


NSA = Claim("NSA", "ngsan_6", ("N-SAN", "SAN"), ())
ABSOLUTE = Claim("boxes", "ngsan_4", ("absolute", "SAN"), (), is_none=True)

CONTROL = Claim("shuffled boxes", "", (), ())


@pytest.mark.parametrize(
    ("claim", "score", "likelihood", "expected"),
    [
        (NSA, (3, 2), None, "came out"),  # the paper has +2.2
        (NSA, (-3, 2), None, "reversed"),
        (NSA, (1, 3), None, "cannot be told"),
        (NSA, (0.5, 1), None, "equivalent"),
        # The log-probability decides, unless the score has the other sign.
        (NSA, (3, 2), (0.0, 0.004), "equivalent"),
        (NSA, (1, 3), (0.02, 0.01), "came out"),
        (NSA, (3, 2), (-0.02, 0.01), "cannot be told"),
        # No effect, says the paper (-0.2): a sign is no confirmation.
        (ABSOLUTE, (-19, 6), None, "reversed"),
        (ABSOLUTE, (-0.5, 1), None, "came out"),
        (ABSOLUTE, (-1.5, 1), None, "cannot be told"),
        # The papers have no number of a control.
        (CONTROL, (3, 2), None, "gain"),
        (CONTROL, (-3, 2), None, "loss"),
        (CONTROL, (0.5, 1), None, "equivalent"),
    ],
)
def test_verdicts_follow_from_intervals_and_margins(claim, score, likelihood, expected):
    likelihood = likelihood and difference(*likelihood)
    found = claims.Evidence("10", difference(*score), likelihood)
    assert claims.verdict(claim, found) == expected


def test_a_gain_over_what_did_not_train_is_none():
    rows = {row[0]: row for row in claims.table(EARLIER)}
    over_lstm = rows["AoA over an LSTM, eight heads: aoanet_4"]
    assert over_lstm[-1] == "base untrained"
    assert rows["an LSTM in the decoder, eight heads"][-1] == "reversed"


def test_settled_effects_have_five_seeds_or_more():
    heads, *rows = claims.table(SETTLED)
    seeds = heads.index("seeds")
    assert min(int(row[seeds]) for row in rows) >= 5


def test_readme_says_what_the_tables_do():
    readme = " ".join((PROJECT / "README.md").read_text().split())
    tables = claims.table(SETTLED) + claims.table(EARLIER)
    found = {row[0]: dict(zip(claims.HEADS, row, strict=True)) for row in tables}
    for effect, text in (
        (
            "GSA, features know no place",
            "we found that of geometry: over five seeds, it gains {:.0f} CIDEr-D",
        ),
        (
            "AoA, 60 % of what is asked is absent",
            "AoA gains {:.0f} where 60 % of what queries ask for is absent",
        ),
    ):
        assert found[effect]["verdict"] == claims.CAME_OUT
        assert text.format(float(found[effect]["ours"].split()[0])) in readme
    costs = found["GSA, features know all places"]
    assert costs["verdict"] == claims.REVERSED
    cost = -float(costs["ours"].split()[0])
    assert f"and loses {cost:.0f} if they hold all places" in readme
    untold = {name: x for name, x in found.items() if name.startswith("NSA, L")}
    untold |= {name: x for name, x in found.items() if "begin smaller" in name}
    assert {x["verdict"] for x in untold.values()} == {claims.UNKNOWN}
    undecided = "No difference to plain attention could be measured for normalization"
    assert f"{undecided} with ten seeds" in readme
    assert {x["seeds"] for x in untold.values()} == {"10", "5", "3"}


def test_p_values_are_adjusted_for_their_number():
    values = [0.01, 0.04, 0.03, 0.005]
    expected = [0.03, 0.06, 0.06, 0.02]  # of Holm, 1979, by hand
    np.testing.assert_allclose(claims.holm(values), expected)
