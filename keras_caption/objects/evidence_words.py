"""Tables of words that detected objects support, and of the evidence that each needs.

A captioner of objects reads categories and boxes only. These tables hold all words that
may describe objects; `keras_caption.objects.evidence` reads the tables. Evidence is
either a category, which at least one object has, or `A RELATION B`, two objects whose
boxes have a relation.

A word for a place or an action is in the tables with an alternative of evidence if it,
or a synonym, occurs in captions of at least 80 % of the training images of
`coco_objects` with that alternative. For postures, it is 70 % of the images whose
captions name any posture. Other entries follow from the meaning of words: who rides
skis is a skier.
"""

from keras_caption.objects.object_words import SYNONYMS

# === Groups of categories; underscores join the words of a name ===
FOOD = "banana apple sandwich orange broccoli carrot hot_dog pizza donut cake"
# Things that lie or stand on others.
SMALL = (
    f"{FOOD} bottle wine_glass cup fork knife spoon bowl laptop mouse remote keyboard "
    "cell_phone book clock vase scissors potted_plant handbag backpack suitcase "
    "teddy_bear tv"
)
SEATS = "chair couch bench bed"
RIDDEN = "skateboard surfboard snowboard skis horse elephant"
HELD = (
    "cell_phone tennis_racket baseball_bat frisbee umbrella wine_glass cup fork spoon "
    "pizza sandwich donut hot_dog remote toothbrush book kite"
)
PETS = "cat dog"

# === Relations of two objects, A and B ===
# From name to the relation of the boxes, of `keras_caption.objects.evidence.GEOMETRY`,
# and pairs of categories of A and B. `*` is any category, different for A and B.
RELATIONS = {
    "on": (
        "above",
        [
            (SMALL, f"dining_table {SEATS}"),
            (f"person {PETS}", SEATS),
            ("person", f"{RIDDEN} bicycle motorcycle boat"),
            (PETS, "dining_table laptop suitcase car truck toilet"),
            ("bird", "bench boat chair elephant"),
        ],
    ),
    "sitting": (
        "above",
        [
            (SMALL, f"dining_table {SEATS}"),
            (f"person {PETS}", "chair couch bench"),
        ],
    ),
    "riding": ("above", [("person", RIDDEN)]),
    "in": ("inside", [(FOOD, "bowl"), (PETS, "sink suitcase"), ("person", "boat")]),
    "at": ("touching", [("person", "dining_table")]),
    "of": ("around", [("bowl cup", FOOD)]),
    "holding": ("around", [("person", HELD)]),
    "wearing": ("around", [("person", "tie")]),
    "flying": ("anywhere", [("person", "kite")]),
    "next": ("beside", [("*", "*")]),
    "with": ("touching", [("*", "*")]),
    "and": ("anywhere", [("*", "*")]),
    "playing": ("anywhere", []),
    "down": ("anywhere", []),
}

# === Words that name no category, with alternatives of evidence ===
IMPLIED = {
    "street road": ["bus", "traffic_light", "stop_sign"],
    "tracks": ["train"],
    "water ocean": ["boat", "surfboard"],
    "wave": ["person riding surfboard"],
    "snow": ["skis", "snowboard"],
    "slope": ["skis", "snowboard"],
    "tennis": ["tennis_racket"],
    "baseball": ["baseball_bat", "baseball_glove"],
    "game": ["baseball_bat + baseball_glove"],
    "bathroom": ["toilet"],
    "kitchen": ["oven", "microwave", "refrigerator + sink"],
    "bedroom": ["bed"],
    "living": ["couch + tv", "couch + book"],
    "desk": ["keyboard", "mouse"],
    "computer": ["keyboard", "mouse"],
    "food": FOOD.split(),
    "player": ["person + baseball_bat", "person + baseball_glove"],
    "man": ["person + skateboard"],
    "surfer": ["person riding surfboard"],
    "skateboarder": ["person riding skateboard"],
    "skier": ["person riding skis"],
    "snowboarder": ["person riding snowboard"],
}
# From a word of a relation to the words of `IMPLIED` that may follow it. All words of
# `IMPLIED` may begin a caption, or follow "and".
PLACES = {
    "on": "street road tracks desk slope",
    "in": "street water ocean snow kitchen bathroom bedroom living",
    "down": "street road slope",
    "at": "desk",
    "riding": "wave",
    "of": "food",
    "with": "food computer man player",
    "playing": "tennis baseball game",
}
# From a verb to the categories that may be its subject.
SAID_OF = {"standing": "zebra giraffe cow sheep elephant", "flying": "kite"}
DONE = {  # from an activity of a person to its evidence
    "skiing": ["person riding skis"],
    "snowboarding": ["person riding snowboard"],
    "skateboarding": ["person riding skateboard"],
    "surfing": ["person riding surfboard"],
}
# From a word to the number of objects that the noun after it needs: least, greatest.
NUMBERS = {
    "two": (2, 2),
    "couple": (2, 2),
    "three": (3, 3),
    "four": (4, 4),
    "several": (4, None),
    "group": (3, None),
    "herd": (3, None),
    "bunch": (3, None),
}
# Words for a relation that are not its name. The noun after such a word is B, and the
# last noun before it is A. One of these words follows "sitting".
GOVERNORS = {"near": "next", "beside": "next"}

# === Nouns ===
# Nouns that mean more than their category, which detections do not support.
SAY_MORE = {
    *SYNONYMS["person"].split(),
    *("taxi", "suv", "jet", "ship", "sailboat", "canoe", "kayak", "kitten", "puppy"),
    *("bull", "calf", "lamb", "pony", "duck", "pigeon", "seagull", "parrot", "owl"),
    *("soccerball", "basketball", "notebook", "smartphone", "scooter", "moped"),
    *("cattle", "luggage", "baseball", "teddy", "persons", "sheeps", "broccolis"),
} - {"people"}
UNCHANGED = ("sheep", "broccoli")  # nouns whose plural is their singular
PAIRS = ("skis", "scissors")  # plurals that name one object
MASS = (
    "water",
    "snow",
    "food",
    "tennis",
    "baseball",
    "tracks",
)  # without an article
VOWELS = "aeiou"

# === Grammar: which kinds of words may follow each kind ===
MODIFIERS = "verb posture transitive preposition next with and end"
GRAMMAR = {
    "start": "a an number several unchanged",
    "a": "one unchanged place living group name",
    "an": "an_one an_place",
    "the": "place an_place living mass",
    "number": "several unchanged name",
    "of": "a an the several unchanged contents name",
    **dict.fromkeys(["one", "an_one", "several", "unchanged"], f"be of {MODIFIERS}"),
    **dict.fromkeys(["place", "an_place", "mass", "contents"], MODIFIERS),
    "be": "verb posture transitive preposition next",
    "verb": "preposition next with end",
    "posture": "preposition next",
    "transitive": "a an number several unchanged mass name",
    "preposition": "a an the number several unchanged mass name",
    "to": "a an number several unchanged name each",
    "with": "a an number several unchanged mass name",
    "and": "a an number several unchanged name",
    "other": "with end",
}
KINDS = {
    "a": "a",
    "an": "an",
    "the": "the",
    "of": "of",
    "is": "be",
    "are": "be",
    "sitting": "posture",
    "to": "to",
    "other": "other",
    "each": "each",
    "food": "contents",
    "next": "next",
    **dict.fromkeys(("top", "covered"), "within"),  # a phrase has another word
    "living": "living",
    "with": "with",
    "and": "and",
    **dict.fromkeys(("two", "three", "four", "several"), "number"),
    **dict.fromkeys(("group", "herd", "bunch", "couple", "pair"), "group"),
    **dict.fromkeys(("standing", *DONE), "verb"),
    "flying": "verb",
    **dict.fromkeys(("riding", "holding", "wearing", "playing"), "transitive"),
    **dict.fromkeys(("on", "in", "at", "down", "near", "beside"), "preposition"),
}
# Phrases beside those of the grammar and the names of categories.
PHRASES = (
    *("group of", "herd of", "bunch of", "couple of", "pair of", "on top", "top of"),
    *("next to", "each other", "living room", "snow covered", "covered slope"),
    *("laptop computer", "tennis player", "baseball player"),
    "baseball game",
)
