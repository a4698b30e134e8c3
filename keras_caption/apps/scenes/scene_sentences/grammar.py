"""A grammar for pairs of an English sentence and its German translation.

The two differ in the order of their words (inversion after a fronted phrase, the verb
at the end of a subordinate clause, participles at the end), and German has agreement
that English does not show: articles, adjectives and pronouns follow the gender and the
case of nouns. No sentence translates word by word, and each has one translation only.
"""

import dataclasses

from keras_caption.apps.scenes.choice import choose
from keras_caption.apps.scenes.scene_sentences.german import (
    ADJECTIVES,
    COMPARATIVES,
    DEFINITE,
    INTERROGATIVE,
    NOUNS,
    NUMBERS,
    PERSONAL,
    PREPOSITIONS,
    VERBS,
    gender,
    noun_phrase,
    plural_phrase,
    prepositional_phrase,
)
from keras_caption.apps.scenes.scenes.language import article as indefinite
from keras_caption.apps.scenes.scenes.language import plural
from keras_caption.apps.scenes.scenes.scene import COLOURS

SIZES = ("large", "small")


@dataclasses.dataclass(frozen=True)
class Thing:
    """A noun phrase in both languages.

    Attributes:
        article: `"the"` or `"a"`.
        adjectives: Tuple of English adjectives.
        noun: English noun.
    """

    article: str
    adjectives: tuple[str, ...]
    noun: str

    @property
    def english(self):
        words = [*self.adjectives, self.noun]
        article = "the" if self.article == "the" else indefinite(words[0])
        return " ".join([article, *words])

    def german(self, case):
        return noun_phrase(self.article, self.adjectives, self.noun, case)


def sample_pair(rng):
    """Samples a sentence with its translation.

    Args:
        rng: `numpy.random.Generator`.

    Returns:
        English and German sentence, two str.
    """
    form = choose(rng, FORMS)
    return tuple(text[0].upper() + text[1:] for text in form(rng))


def _adjectives(rng):
    colour, size = choose(rng, COLOURS), choose(rng, SIZES)
    return choose(rng, [(), (colour,), (size,), (size, colour)])


def _thing(rng, article=None):
    article = article or choose(rng, ("the", "a"))
    return Thing(article, _adjectives(rng), choose(rng, NOUNS))


def _location(rng):
    """Samples a prepositional phrase in both languages."""
    preposition, thing = choose(rng, PREPOSITIONS), _thing(rng)
    german = prepositional_phrase(preposition, thing.german("dative"))
    return f"{preposition} {thing.english}", german


def _statement(rng):
    a, (english, german) = _thing(rng), _location(rng)
    return f"{a.english} is {english}.", f"{a.german('nominative')} ist {german}."


def _existence(rng):
    a, (english, german) = _thing(rng, "a"), _location(rng)
    return f"there is {a.english} {english}.", f"{german} ist {a.german('nominative')}."


def _count(rng):
    number, adjectives, noun = (
        choose(rng, NUMBERS),
        _adjectives(rng),
        choose(rng, NOUNS),
    )
    english, german = _location(rng)
    words = " ".join([number, *adjectives, plural(noun)])
    return (
        f"there are {words} {english}.",
        f"{german} sind {plural_phrase(number, adjectives, noun)}.",
    )


def _comparison(rng):
    a, b, word = _thing(rng), _thing(rng), choose(rng, COMPARATIVES)
    return (
        f"{a.english} is {word} than {b.english}.",
        f"{a.german('nominative')} ist {COMPARATIVES[word]} als "
        f"{b.german('nominative')}.",
    )


def _perfect(rng):
    a, b, (english, german) = _thing(rng), _thing(rng), choose(rng, VERBS.items())
    return (
        f"{a.english} has {english[1]} {b.english}.",
        f"{a.german('nominative')} hat {b.german('accusative')} {german[1]}.",
    )


def _relative_location(rng):
    a, adjective = _thing(rng, "the"), choose(rng, ADJECTIVES)
    english, german = _location(rng)
    pronoun = DEFINITE["nominative"][gender(a.noun)]
    return (
        f"{a.english} that is {english} is {adjective}.",
        f"{a.german('nominative')}, {pronoun} {german} ist, ist "
        f"{ADJECTIVES[adjective]}.",
    )


def _relative_object(rng):
    a, b, verb = _thing(rng, "the"), _thing(rng), choose(rng, VERBS)
    english, german = _location(rng)
    pronoun = DEFINITE["nominative"][gender(a.noun)]
    return (
        f"{a.english} that {verb[0]} {b.english} is {english}.",
        f"{a.german('nominative')}, {pronoun} {b.german('accusative')} "
        f"{VERBS[verb][0]}, ist {german}.",
    )


def _reason(rng):
    a, b = _thing(rng), _thing(rng, "a")
    return (
        f"{a.english} cannot be seen because {b.english} covers it.",
        f"{a.german('nominative')} ist nicht zu sehen, weil {b.german('nominative')} "
        f"{PERSONAL[gender(a.noun)]} verdeckt.",
    )


def _question(rng):
    noun, adjective = choose(rng, NOUNS), choose(rng, ADJECTIVES)
    english, german = _location(rng)
    return (
        f"which {noun} {english} is {adjective}?",
        f"{INTERROGATIVE[gender(noun)]} {NOUNS[noun][1]} {german} ist "
        f"{ADJECTIVES[adjective]}?",
    )


FORMS = (
    _statement,
    _existence,
    _count,
    _comparison,
    _perfect,
    _relative_location,
    _relative_object,
    _reason,
    _question,
)
