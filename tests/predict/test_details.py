"""Captions with what was measured of their photos, and what admits each word."""

import importlib.resources
import json

import numpy as np
import pytest
from keras_caption.objects import CATEGORIES, SecondOpinion

from keras_caption.apps.objects.actions import ANIMAL
from keras_caption.apps.objects.added_details import add_details
from keras_caption.apps.objects.coloured_objects import shares_of_colours as in_graphs
from keras_caption.apps.objects.description import article, describe, plural
from keras_caption.apps.objects.details import COLOUR, admits, details
from keras_caption.apps.objects.dog_colours import (
    DOG,
    DOG_COLOURS,
    is_called,
    likely_dog_colour,
)
from keras_caption.apps.objects.object_colours import (
    COLOURS,
    pixel_shares,
    shares_of_colours,
)
from keras_caption.apps.objects.places import PLACES, is_at, likely_places
from keras_caption.apps.objects.thing_colours import (
    SAID,
    THING,
    likely_thing_colour,
)
from keras_caption.decoding import Decoding
from keras_caption.predict import Prediction

FILE = importlib.resources.files("keras_caption.apps.objects") / "details.npz"
GRASS = [{"name": "grass", "phrase": "on grass", "probability": 0.95}]
OUTDOORS = [{"name": "outdoors", "phrase": "outdoors", "probability": 0.97}]
INDOORS = [{"name": "indoors", "phrase": "indoors", "probability": 0.97}]
LEFT, RIGHT = [0.0, 0.0, 0.5, 1.0], [0.4, 0.0, 1.0, 1.0]
SWING = [{"name": "swing", "kind": "thing", "probability": 0.7}]


def detected(category, i=0, **more):
    """An object whose box has a place of its own."""
    measured = {f"{key}_probability": 0.9 for key in more}
    box = [i / 10, 0.0, 1.0, 1.0]
    return {"category": category, "score": 0.8, "box": box, **more, **measured}


def described(caption, *objects, places=(), things=()):
    return describe(caption, objects, places, things)[0]


def test_captions_say_what_was_measured():
    black = detected("dog", colour="black")
    retriever = detected("dog", name="golden retriever", colour="brown")
    expected = "a golden retriever sitting on a couch"
    assert described("a dog sitting on a couch", retriever) == expected
    orange = detected("cat", colour="orange")
    assert described("a cat next to a dog", orange, black) == (
        "an orange cat next to a black dog"
    )
    assert described("a person", detected("person"), things=SWING) == (
        "a person and a swing"
    )
    trunks = [{"name": "swimming trunks", "kind": "thing", "probability": 0.7}]
    assert described("two people", detected("person"), things=trunks) == (
        "two people and swimming trunks"
    )
    assert described("a dog", black, places=GRASS) == "a black dog on grass"
    child = detected("person", name="child")
    assert described("a person with a dog", child, black) == "a child with a black dog"
    assert described("a group of people", *[child] * 3) == "a group of children"
    assert described("two people", child, detected("person")) == "two people"
    expected = "a group of black dogs and a swing on grass"
    both = {"places": GRASS, "things": SWING}
    assert described("a group of dogs", black, black, black, **both) == expected
    assert described("an elephant", detected("elephant", name="tusker")) == "a tusker"
    eight = [detected("person")] * 8
    assert described("a group of people", *eight, places=OUTDOORS) == (
        "many people outdoors"
    )
    for caption, objects in (
        ("a group of people", eight[1:]),
        ("a group of people with a dog", [*eight, black]),
        ("a group of people playing", eight),  # of whom some may be
    ):
        assert described(caption, *objects).startswith("a group of people")
    # A general place is of persons and pets that the caption says nothing else of.
    outdoors = {"places": OUTDOORS}
    assert described("a dog", black, **outdoors) == "a black dog outdoors"
    pair = "a person with a dog"
    assert described(pair, detected("dog"), **outdoors) == f"{pair} outdoors"
    meal, indoors = "a person with a pizza", {"places": INDOORS}
    assert described(meal, detected("pizza"), **outdoors) == meal
    assert described(meal, detected("pizza"), **indoors) == f"{meal} indoors"
    assert described("a pizza", detected("pizza"), **indoors) == "a pizza"
    for caption in ("a bear", "a dog with a frisbee", "a person in a kitchen"):
        assert described(caption, detected("bear"), **outdoors) == caption
    huskies = [detected("dog", name="husky")] * 2
    assert described("two dogs next to each other", *huskies, places=GRASS) == (
        "two huskies next to each other on grass"
    )


def test_what_is_on_a_table_is_said_before_it():
    table = {**detected("dining table"), "box": [0.1, 0.4, 0.9, 1.0]}
    cup = {**detected("cup"), "box": [0.4, 0.3, 0.5, 0.6]}
    beside = {**cup, "box": [0.0, 0.3, 0.05, 0.6]}
    for under in ("a table", "a dining table"):
        assert described(f"{under} with a cup", table, cup) == f"a cup on {under}"
    assert described("a desk with a cup", table, cup) == "a desk with a cup"
    for caption, objects in (
        ("a table with a cup", [table, beside]),
        ("a table with a chair", [table, {**cup, "category": "chair"}]),
        ("a table with a cup in the water", [table, cup]),
    ):
        assert described(caption, *objects) == caption


def test_things_alone_are_on_a_table():
    table = [{"name": "table", "phrase": "on a table", "probability": 0.9}]
    bowl, carrot, person = (detected(x) for x in ("bowl", "carrot", "person"))
    for caption, on_it in (
        ("a bowl with a carrot", "a bowl with a carrot on a table"),
        ("a bowl of food", "a bowl of food on a table"),
        ("a person with a bowl", "a person with a bowl"),
        ("a car", "a car"),
    ):
        assert described(caption, bowl, carrot, person, places=table) == on_it
    assert described("a bowl", bowl, places=[*table, *GRASS]) == "a bowl on a table"
    assert described("a car", places=[*table, *GRASS]) == "a car on grass"


def test_captions_become_grammatical():
    objects = [detected(x) for x in ("person", "boat", "car", "tv", "broccoli")]
    for caption, better in (
        ("a person is in the water and a boat", "a person is in the water with a boat"),
        ("a person on a boat and cars", "a person on a boat with cars"),
        ("a tv and a person is on a boat", "a tv and a person are on a boat"),
        ("a person with a broccoli", "a person with broccoli"),
        ("a couple of broccoli", "broccoli"),
    ):
        assert described(caption, *objects) == better
    for caption in (
        "a street with a boat and a car",
        "a person holding a boat and a car",
        "a person on a boat and a car with a tv",
        "a person on a black and white boat",
    ):
        assert described(caption, *objects) == caption


def test_numbers_are_of_objects_that_are_sure():
    sure, unsure = detected("cat"), {**detected("cat"), "score": 0.4}
    for caption, plural_alone in (
        ("two cats", "cats"),
        ("a couple of cats on a bed", "cats on a bed"),
        ("a bed with two cats", "a bed with cats"),
    ):
        assert described(caption, sure, sure) == caption
        assert described(caption, sure, unsure) == plural_alone
    assert described("two cats", sure) == "two cats"  # a prefix has said so
    kittens = [{**x, "name": "kitten", "name_probability": 0.9} for x in (sure, unsure)]
    assert described("two cats", *kittens, places=OUTDOORS) == "kittens outdoors"


def test_one_of_several_that_are_sure_is_said_in_the_plural():
    left, right = ({**detected("pizza"), "box": x} for x in (LEFT, RIGHT))
    table, unsure = detected("dining table"), {**right, "score": 0.4}
    for caption, several in (
        ("a pizza", "pizzas"),
        (
            "a pizza is sitting on top of a table",
            "pizzas are sitting on top of a table",
        ),
        ("a cup with a pizza", "a cup with pizzas"),
        ("a table and a pizza", "a table and pizzas"),
        ("a table next to a pizza", "a table next to a pizza"),  # one of them may be
        ("a pizza with a pizza", "a pizza with a pizza"),
    ):
        assert described(caption, left, right, table) == several
        assert described(caption, left, unsure, table) == caption
        assert described(caption, left, left, table) == caption  # found twice
    huskies = [{**detected("dog", name="husky"), "box": x} for x in (LEFT, RIGHT)]
    assert described("a dog", *huskies, places=GRASS) == "huskies on grass"
    people = [{**detected("person"), "box": x} for x in (LEFT, RIGHT)]
    assert described("a person on a boat", *people) == "a person on a boat"
    knives = [{**detected("knife"), "box": x} for x in (LEFT, RIGHT)]
    assert described("a knife", *knives) == "knives"


def test_what_is_not_sure_stays_as_it_is():
    black, brown = detected("dog", colour="black"), detected("dog", colour="brown")
    for caption, objects in (
        ("a hot dog", [black]),
        ("a teddy bear", [detected("bear", colour="brown", name="polar bear")]),
        ("two dogs", [black, brown]),
        ("a dog on a couch", [black, detected("dog")]),
        ("an orange cat", [detected("orange", colour="green")]),
    ):
        assert described(caption, *objects) == caption
    both = {"places": GRASS, "things": SWING}
    for caption, objects in (
        ("", [black]),
        ("a dog house", [black]),
        ("a dog's bowl", [black]),
        ("a white dog on a beach", [black]),
        ("a cup of coffee", [detected("cup", name="espresso")]),
        ("a banana sobre a mesa", [detected("banana", colour="yellow")]),
        ("un perro en la calle", [black]),
    ):
        assert described(caption, *objects, **both) == caption
    # Once of two, and no place for what flies or where one has been said.
    assert described("a dog with a dog", black) == "a black dog with a dog"
    kite = detected("kite")
    assert described("a kite flying", kite, places=GRASS) == "a kite flying"
    street = "a person down the street"
    assert described(street, detected("person"), places=GRASS) == street
    bench = [{"name": "park bench", "kind": "thing", "probability": 0.9}]
    assert described("a bench", detected("bench"), things=bench) == "a bench"


def test_each_content_word_is_linked_to_what_admits_it():
    objects = [
        detected("dog", 1, name="golden retriever"),
        detected("bus", 2, colour="red"),
        detected("bus", 3, colour="red"),
        detected("person", 4),
    ]
    boxes = [x["box"] for x in objects]
    text, links = describe("a dog next to a bus on a street", objects)
    assert text == "a golden retriever next to a red bus on a street"
    assert [(x["word"], x["kind"], x["boxes"]) for x in links] == [
        ("golden retriever", "name", [boxes[0]]),
        ("next", "relation", boxes[:3]),
        ("red", "colour", boxes[1:3]),
        ("bus", "object", boxes[1:3]),
        ("on", "relation", boxes[1:3]),
        ("street", "place", boxes[1:3]),
    ]
    text, links = describe("a person", objects, GRASS, SWING)
    found = {x["word"]: (x["kind"], x["probability"], x["boxes"]) for x in links}
    assert found["swing"] == ("thing", 0.7, [])
    assert found["grass"] == ("place", 0.95, [])
    text, links = describe("a person", objects, OUTDOORS)
    assert (text, links[-1]["word"]) == ("a person outdoors", "outdoors")
    assert all(text.startswith(x["word"], x["start"]) for x in links)


@pytest.mark.parametrize(
    ("word", "one", "two"),
    [
        ("woman", "a", "women"),
        ("fox", "a", "foxes"),
        ("husky", "a", "huskies"),
        ("unicycle", "a", "unicycles"),
        ("umbrella", "an", "umbrellas"),
        ("hourglass", "an", "hourglasses"),
        ("donkey", "a", "donkeys"),
    ],
)
def test_articles_and_plurals(word, one, two):
    assert (article(word), plural(word)) == (one, two)


def drawn(colour, around, extent=(1.0, 0.5)):
    """A photo of an object of one colour, in the upper part of a grey square."""
    image = np.full((64, 64, 3), 114, "float32")
    image[:32] = around
    image[8:24, 16:48] = colour
    return image, np.array(extent, "float32"), [0.25, 0.25, 0.75, 0.75]


def test_colours_are_those_of_the_object_and_not_of_what_is_around():
    for word, colour in (
        ("black", (20, 20, 25)),
        ("brown", (120, 80, 45)),
        ("red", (190, 35, 40)),
        ("yellow", (230, 215, 70)),
    ):
        for around in (60, 140, 60), (250, 250, 250):
            shares = pixel_shares(*drawn(colour, around))
            assert COLOURS[shares.argmax()] == word
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3)).astype("float32")
    np.testing.assert_allclose(
        shares_of_colours(pixels), in_graphs(pixels[None])[0], atol=1e-5
    )


def test_things_of_one_colour_are_called_so():
    red, grey, image = (190, 30, 35), (130, 130, 130), np.full((64, 64, 3), 114.0)
    image[:, :] = grey
    image[16:48, 16:48] = red
    square, box = (
        (image.astype("float32"), np.ones(2, "float32")),
        [0.25, 0.25, 0.75, 0.75],
    )
    colour, probability = likely_thing_colour(*square, "bus", box)
    assert colour == "red"
    assert 0.9 <= probability < 1
    assert likely_thing_colour(*square, "pizza", box) is None
    assert likely_thing_colour(*square, "bus", [0.45, 0.45, 0.55, 0.55]) is None
    image[16:48, 16:48] = (205, 205, 205)
    bright = image.astype("float32"), square[1]
    sink, suitcase = (
        likely_thing_colour(*bright, x, box) for x in ("sink", "suitcase")
    )
    assert sink[0] == "white"
    assert sink[1] > suitcase[1]  # of which fewer are white
    image[16:32, 16:48], image[32:48, 16:48] = red, (60, 110, 200)
    two = image.astype("float32"), square[1]
    assert likely_thing_colour(*two, "bus", box) is None


def test_the_table_admits_what_is_probable_enough():
    rows = details()
    assert all(row.right >= 0.9 and row.said >= 8 for row in rows)
    for row in rows:
        assert row.of in {"", THING, ANIMAL, *CATEGORIES}
        assert admits(row.kind, row.word, row.least, row.of)
        assert not admits(row.kind, row.word, row.least - 0.01, row.of)
    assert not admits(COLOUR, "red", 1.0, DOG)
    assert not admits(COLOUR, "pink", 1.0, THING)
    of_dogs = [x.word for x in rows if x.of == "dog"]
    assert set(of_dogs) <= {*DOG_COLOURS}
    assert {x for word in of_dogs for x in DOG_COLOURS[word]} <= {*np.load(FILE)}
    assert {x.word for x in rows if x.of == THING} <= {*SAID}
    classes = np.full(1000, 0.001)
    places = likely_places(*drawn(0, 0)[:2], classes, classes, [])
    ranks = [PLACES[x["name"]].rank for x in places]
    assert ranks == sorted(ranks)
    json.dumps(places)


def test_people_say_colours_and_places_in_other_words():
    assert is_called("black and white", frozenset({"black", "white"}))
    assert is_called("black", frozenset({"black", "white"}))
    assert not is_called("black and white", frozenset({"black"}))
    park, room = "A man sits in a park.", "A woman reads in a room."
    assert is_at("grass", ["A dog on a lawn.", room])
    assert not is_at("grass", ["A dog on a lawn.", room], least=2)
    assert is_at("outdoors", [park, park])
    assert not is_at("outdoors", [room, room])
    # Captions that contradict each other, or of which only one says a word.
    assert is_at("outdoors", [park, room]) is is_at("indoors", ["A man.", room]) is None


def typical_of(*words, strength=1.0):
    """Probabilities of classes that are typical of what regressions have learnt."""
    weights = np.load(FILE)
    logits = sum(weights[x].astype("float64")[:1000] for x in words)
    classes = np.exp(strength * logits / logits.std())
    return classes / classes.sum()


def seen_as(*words, **others):
    """What a second opinion sees in a typical photo and in its lower half."""
    classes = typical_of(*words)
    return {"classes": classes, "lower_classes": classes, **others}


def test_each_of_several_dogs_has_to_be_surer():
    found = []
    for strength in np.linspace(0, 1, 21):
        dog = typical_of("brown", strength=strength), np.full(16, 1 / 16)
        alone, several = likely_dog_colour(*dog), likely_dog_colour(*dog, several=True)
        assert several is None or several == alone
        found.append((alone is not None, several is not None))
    assert found[0] == (False, False)
    assert (True, False) in found
    assert found[-1] == (True, True)


def test_a_prediction_gets_what_its_photo_shows():
    image, extent, box = drawn((110, 70, 40), (60, 140, 60))
    photo = {"images": image, "extents": extent}

    def caption_of(box_classes, **options):
        caption = Prediction("a dog", best=[("a dog", -1.0), ("a dog standing", -2.0)])
        caption.objects = [{"category": "dog", "score": 0.9, "box": box}]
        caption.inputs = seen_as("grass", box_classes=box_classes)
        add_details(caption, photo, Decoding(**options))
        return caption

    brown = typical_of("brown")[None]
    caption = caption_of(brown)
    assert caption.best[0] == (caption.text, -1.0)
    assert caption.text == "a brown dog on grass"
    assert caption.objects[0]["colour"] == "brown"
    assert caption.links[0]["boxes"] == [box]
    assert caption_of(np.zeros((1, 1000))).text == "a dog on grass"  # not classified
    # Details go that options do not leave.
    for options, text in (
        ({"forbidden": ["Brown"]}, "a dog on grass"),
        ({"forbidden": ["on grass", "row"]}, "a brown dog"),
        ({"prefix": "a dog"}, "a dog on grass"),
        ({"required": ["a dog"], "forbidden": ["grass"]}, "a dog"),
    ):
        caption = caption_of(brown, **options)
        assert caption.best[0] == (caption.text, -1.0)
        assert caption.text == text
        assert all(text[x["start"] :].startswith(x["word"]) for x in caption.links)
    # A photo without colours, as JPEG stores it.
    grey = np.repeat(image.mean(axis=-1, keepdims=True).round(), 3, axis=-1)
    photo["images"], coloured = grey + np.array([0, 1, 3], grey.dtype), photo["images"]
    caption = caption_of(brown)
    assert caption.text == "a black and white picture of a dog on grass"
    assert "colour" not in caption.objects[0]
    [link] = (x for x in caption.links if x["kind"] == "colour")
    assert (link["word"], link["boxes"]) == ("black and white picture", [])
    assert all(caption.text[x["start"] :].startswith(x["word"]) for x in caption.links)
    assert caption_of(brown, prefix="a dog").text == "a dog on grass"
    sentence = "a dog is next to a dog"
    assert describe(sentence, caption.objects, is_black_and_white=True)[0] == sentence
    photo["images"] = coloured
    bare = Prediction("a dog", best=[("a dog", -1.0)])
    bare.objects = [{"category": "dog", "score": 0.9, "box": box}]
    add_details(bare, photo, Decoding())  # without a second opinion
    assert bare.text == "a dog"


def test_a_person_has_a_name_where_it_is_sure():
    image, extent, box = drawn((110, 70, 40), (60, 140, 60))
    [row] = (x for x in details() if x.word == "child")
    weights = np.load(FILE)["child"].astype("float64")[:2000].reshape(2, 1000)

    def caption_of(times, text="a person", count=1):
        """The caption of persons with classes that are typical of children."""
        classes, typical = np.exp(times * weights / weights.std())
        classes, typical = classes / classes.sum(), typical / typical.sum()
        caption = Prediction(text, best=[(text, -1.0)])
        person = {"category": "person", "score": 0.9, "box": box}
        caption.objects = [{**person} for _ in range(count)]
        boxes = np.stack([classes] * count + [np.zeros(1000)])
        caption.inputs = {"classes": typical, "lower_classes": typical}
        caption.inputs["box_classes"] = boxes
        add_details(caption, {"images": image, "extents": extent}, Decoding())
        return caption

    caption = caption_of(1.0)
    assert caption.text.startswith("a child")
    [name] = (x for x in caption.links if x["kind"] == "name")
    json.dumps(caption.links)
    assert (name["word"], name["boxes"]) == ("child", [box])
    assert name["probability"] >= row.least
    assert caption_of(-1.0).text.startswith("a person")
    assert "children" not in {x.word for x in details()}  # too few of them were right
    assert caption_of(1.0, "two people", 2).text.startswith("two people")


def test_where_nothing_is_detected_a_second_opinion_names_what_it_sees():
    photo = {"images": np.zeros((8, 8, 3)), "extents": np.ones(2)}

    def of_class(place, probability, **options):
        classes = np.full((1, 1000), 1e-6)
        classes[0, place] = probability
        caption = Prediction(things=SecondOpinion.things_of({"classes": classes}, 0))
        add_details(caption, photo, Decoding(**options))
        return caption

    koala, cliff, maze = 105, 972, 646
    caption = of_class(koala, 0.9)
    assert (caption.text, caption.confidence, caption.unsure) == ("a koala", 0.9, False)
    assert caption.best == [("a koala", caption.score)]
    [link] = caption.links
    assert (link["word"], link["start"], link["boxes"]) == ("koala", 2, [])
    assert of_class(cliff, 0.9).text == "a cliff"
    assert of_class(koala, 0.6).text == of_class(maze, 0.6).text == ""
    assert of_class(koala, 0.9, forbidden=["koala"]).text == ""


def test_where_nothing_is_seen_a_photo_is_called_as_its_place():
    photo = {"images": drawn((40, 130, 50), (40, 130, 50))[0], "extents": np.ones(2)}

    def of_places(*words, **options):
        caption = Prediction(inputs=seen_as(*words))
        add_details(caption, photo, Decoding(**options))
        return caption

    caption = of_places("grass")
    assert (caption.text, caption.unsure) == ("grass", False)
    assert caption.confidence == caption.links[0]["probability"] >= 0.75
    assert {x["kind"] for x in caption.links} == {"place"}
    [link] = of_places("beach", forbidden=["grass"]).links
    assert (link["word"], link["start"]) == ("beach", 2)
    assert not of_places("indoors").links  # as general, it says nothing
    detected = Prediction()
    add_details(detected, photo, Decoding())  # by a detector alone
    assert detected == Prediction()
