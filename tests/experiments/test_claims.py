"""What claims.py says of an effect, by the rules of docs/results/effects.md."""

import numpy as np
import pytest
from conftest import PROJECT

from experiments import claims
from experiments.papers.claimed import Claim
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
    found = claims.Evidence(10, difference(*score), likelihood)
    assert claims.verdict(claim, found) == expected


@pytest.fixture(scope="module")
def tables():
    return claims.tables()


def by_row(lines):
    return {line["row"]: line for line in lines}


def test_a_gain_over_what_did_not_train_is_none(tables):
    rows = by_row(tables["claims"] + tables["claims_earlier"])
    assert rows["an LSTM in the decoder, eight heads"]["verdict"] == claims.REVERSED
    over_lstm = "AoA over an LSTM, eight heads: aoanet_4"
    assert rows[over_lstm]["verdict"] == claims.UNTRAINED
    assert rows[f"{over_lstm}_scenes"]["verdict"] != claims.UNTRAINED


def test_settled_effects_are_of_five_seeds_and_todays_start(tables):
    todays = str(claims.INITIALIZATION_VERSION)
    for line in tables["claims"]:
        assert int(line["seeds"]) >= 5
        assert line["initialization"] == todays
    for line in tables["claims_earlier"]:
        assert int(line["seeds"]) < 5 or line["initialization"] != todays
        assert line["Holm"] == claims.EXPLORATORY


def test_only_primary_comparisons_are_adjusted_for_all_that_were_declared(monkeypatch):
    effects = {
        name: claims.Evidence(5, difference(3, 2), difference(mean, 0.01))
        for name, mean in ((claims.PRIMARY[0], 0.013), ("NSA, L = 4", 0.1))
    }
    monkeypatch.setattr(claims, "evidence", lambda claim, _: effects.get(claim.effect))
    rows = by_row(claims.tables()["claims"])
    p = float(rows[claims.PRIMARY[0]]["p"])
    assert 0.005 < p < 0.02
    # Of five, four are not trained yet.
    adjusted = float(rows[claims.PRIMARY[0]]["Holm"])
    assert adjusted == pytest.approx(5 * p, abs=0.003)
    assert rows["NSA, L = 4"]["Holm"] == claims.EXPLORATORY


@pytest.mark.parametrize("commit", ["", "d37a12a601"])
def test_rows_of_today_and_of_earlier_code_are_not_compared(
    commit, tmp_path, monkeypatch
):
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    rows = f"SAN,5,200.0 ± 2.0,1,{commit}", "N-SAN,3,190.0 ± 2.0,1,"
    header = "row,seeds,CIDEr-D,initialization,commit"
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    found = claims.evidence(NSA, "t")
    assert (found is None) == bool(commit)


def test_headlines_have_the_verdicts_that_their_reasons_were_written_for(tables):
    for line in tables["effects"]:
        assert line["why"], f"{line['claim']}: write a reason for {line['verdict']}"


def test_readme_says_what_the_tables_do(tables):
    readme = " ".join((PROJECT / "README.md").read_text().split())
    found = by_row(tables["claims"] + tables["claims_earlier"])
    for effect, text in (
        (
            "GSA, features know no place",
            "**Geometry** (five seeds): it gains {:.0f} CIDEr-D if the features",
        ),
        (
            "AoA, 60 % of what is asked is absent",
            "it gains {:.0f} CIDEr-D if 60 % of what queries ask for is absent",
        ),
    ):
        assert found[effect]["verdict"] == claims.CAME_OUT
        assert text.format(float(found[effect]["ours"].split()[0])) in readme
    costs = found["GSA, features know all places"]
    assert costs["verdict"] == claims.REVERSED
    cost = -float(costs["ours"].split()[0])
    assert f"and loses {cost:.0f} if they contain all positions" in readme
    over_gate = found["control: AoA over that gate"]
    gain = over_gate["log-probability"].split()[0].lstrip("+")
    assert over_gate["verdict"] == claims.GAIN
    gate = "gate that sees the query alone, it gains {} thousandths of a nat per token"
    assert gate.format(gain) in readme
    untold = {name: x for name, x in found.items() if name.startswith("NSA, L")}
    untold |= {name: x for name, x in found.items() if "begin smaller" in name}
    assert {x["verdict"] for x in untold.values()} == {claims.UNKNOWN}
    undecided = "**Normalization** (ten seeds) and **areas** (three seeds): no diff"
    assert undecided in readme
    assert {x["seeds"] for x in untold.values()} == {"10", "5", "3"}


def test_p_values_are_adjusted_for_their_number():
    values = [0.01, 0.04, 0.03, 0.005]
    expected = [0.03, 0.06, 0.06, 0.02]  # of Holm, 1979, by hand
    np.testing.assert_allclose(claims.holm(values), expected)
