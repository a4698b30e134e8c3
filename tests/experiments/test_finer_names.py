import pathlib

from experiments import finer_names
from keras_caption.apps.objects.imagenet_names import TABLE

SEEN = pathlib.Path(__file__).parents[2] / "experiments" / "names_seen.csv"


def look(name, probability, seen="yes"):
    return {"name": name, "probability": probability, "seen": seen}


def test_the_table_of_names_is_what_was_fitted(tmp_path):
    finer_names.main([str(SEEN), "--output", str(tmp_path / "names.csv")])
    assert (tmp_path / "names.csv").read_text() == TABLE.read_text()


def test_names_that_are_right_are_said_from_lower_probabilities_on():
    looks = [look("pug", 0.3)] * 8 + [look("hound", 0.3, "no"), look("hound", 0.5)] * 8
    looks += [look("minivan", 0.9, "no")] * 4
    least, rows = finer_names.fit(looks)
    # The others of their kind are few, or as doubtful as the hounds of 0.3.
    expected = {"pug": 0.25, "hound": 0.35, "corgi": 0.6, "minivan": None, "jeep": 0.6}
    assert {name: least[name] for name in expected} == expected
    assert rows[-1] == ["never said", 4, "", 0, ""]


def test_an_object_is_called_by_its_finest_name():
    chain = [look("golden retriever", 0.3, "no"), look("retriever", 0.4)]
    looks = [{"photo": "a", "object": "0", **x} for x in chain]
    least = {"golden retriever": 0.25, "retriever": 0.25}
    assert finer_names.called(looks, least) == [False]
    assert finer_names.called(looks, {**least, "golden retriever": None}) == [True]
