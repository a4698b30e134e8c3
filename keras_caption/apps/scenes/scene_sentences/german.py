"""German words for scenes: nouns and adjectives with their declension."""

# Gender of the nouns, and the forms that are not regular: nominative plural, and
# dative singular and plural where they differ from it.
NOUNS = {
    "circle": ("m", "Kreis", "Kreise"),
    "square": ("n", "Quadrat", "Quadrate"),
    "triangle": ("n", "Dreieck", "Dreiecke"),
    "star": ("m", "Stern", "Sterne"),
    "heart": ("n", "Herz", "Herzen"),
    "cross": ("n", "Kreuz", "Kreuze"),
    "ring": ("m", "Ring", "Ringe"),
    "diamond": ("f", "Raute", "Rauten"),
    "moon": ("m", "Mond", "Monde"),
    "tree": ("m", "Baum", "Bäume"),
    "house": ("n", "Haus", "Häuser"),
    "arrow": ("m", "Pfeil", "Pfeile"),
}
DATIVES = {"Herz": "Herzen"}
ADJECTIVES = {
    "red": "rot",
    "orange": "orange",
    "yellow": "gelb",
    "green": "grün",
    "blue": "blau",
    "purple": "violett",
    "brown": "braun",
    "black": "schwarz",
    "white": "weiß",
    "large": "groß",
    "small": "klein",
}
UNDECLINED = "orange"
COMPARATIVES = {"larger": "größer", "smaller": "kleiner"}
NUMBERS = {"two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
# Prepositions that govern the dative.
PREPOSITIONS = {
    "below": "unter",
    "above": "über",
    "beside": "neben",
    "inside": "in",
    "left of": "links von",
    "right of": "rechts von",
    "far from": "weit entfernt von",
}
# Of verbs that govern the accusative: third person singular and past participle.
VERBS = {
    ("touches", "touched"): ("berührt", "berührt"),
    ("covers", "covered"): ("verdeckt", "verdeckt"),
}

DEFINITE = {
    "nominative": {"m": "der", "f": "die", "n": "das"},
    "accusative": {"m": "den", "f": "die", "n": "das"},
    "dative": {"m": "dem", "f": "der", "n": "dem"},
}
INDEFINITE = {
    "nominative": {"m": "ein", "f": "eine", "n": "ein"},
    "accusative": {"m": "einen", "f": "eine", "n": "ein"},
    "dative": {"m": "einem", "f": "einer", "n": "einem"},
}
INTERROGATIVE = {"m": "welcher", "f": "welche", "n": "welches"}
PERSONAL = {"m": "ihn", "f": "sie", "n": "es"}  # accusative
# Endings of adjectives after a definite and after an indefinite article.
WEAK = {
    "nominative": {"m": "e", "f": "e", "n": "e"},
    "accusative": {"m": "en", "f": "e", "n": "e"},
    "dative": {"m": "en", "f": "en", "n": "en"},
}
MIXED = {
    "nominative": {"m": "er", "f": "e", "n": "es"},
    "accusative": {"m": "en", "f": "e", "n": "es"},
    "dative": {"m": "en", "f": "en", "n": "en"},
}


def gender(noun):
    """Returns the gender of an English noun's translation: `"m"`, `"f"` or `"n"`."""
    return NOUNS[noun][0]


def decline(adjective, ending):
    """Translates an English adjective, with an ending if it is declined."""
    stem = ADJECTIVES[adjective]
    return stem if adjective == UNDECLINED else stem + ending


def noun_phrase(article, adjectives, noun, case):
    """Makes a singular noun phrase.

    Args:
        article: `"the"` or `"a"`.
        adjectives: English adjectives.
        noun: English noun.
        case: `"nominative"`, `"accusative"` or `"dative"`.
    """
    kind, singular, _ = NOUNS[noun]
    if case == "dative":
        singular = DATIVES.get(singular, singular)
    articles, endings = (DEFINITE, WEAK) if article == "the" else (INDEFINITE, MIXED)
    declined = [decline(adjective, endings[case][kind]) for adjective in adjectives]
    return " ".join([articles[case][kind], *declined, singular])


def prepositional_phrase(preposition, phrase):
    """Makes a prepositional phrase of an English preposition and a dative phrase."""
    joined = f"{PREPOSITIONS[preposition]} {phrase}"
    return joined.replace("in dem ", "im ").replace("von dem ", "vom ")


def plural_phrase(number, adjectives, noun):
    """Makes a plural phrase without article, in the nominative or accusative."""
    declined = [decline(adjective, "e") for adjective in adjectives]
    return " ".join([NUMBERS[number], *declined, NOUNS[noun][2]])
