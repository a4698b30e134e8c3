"""The tables of `keras_caption.objects.evidence_words`, over a vocabulary."""

import numpy as np

from keras_caption.objects.categories import CATEGORIES
from keras_caption.objects.evidence_words import (
    DONE,
    GOVERNORS,
    GRAMMAR,
    IMPLIED,
    KINDS,
    MASS,
    NUMBERS,
    PAIRS,
    PHRASES,
    PLACES,
    RELATIONS,
    SAID_OF,
    SAY_MORE,
    UNCHANGED,
    VOWELS,
)
from keras_caption.objects.object_words import CATEGORY, NOUN, PLURALS
from keras_caption.text import EOS, PAD, Vocabulary

MOST = 10**6  # a number of objects that no image has
TRANSITIVE = [*(x for x, kind in KINDS.items() if kind == "transitive"), "flying"]
IMPLIED_WORDS = [word for words in IMPLIED for word in words.split()]
# Relations that no verb and no form of "be" stands before.
JOINS = ("with", "and", "of")


class EvidenceTables:
    """Arrays that say what the words of a vocabulary need, and lead to.

    What a word needs is one of several classes, a row of `alone`: that the next noun
    may be one object of a category, say, or that there is a B for a relation.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`.
    """

    def __init__(self, vocabulary: Vocabulary):
        self.size = len(vocabulary)
        self.number = {word: i for i, word in enumerate(vocabulary.words)}
        self._read_relations()
        self._read_implied()
        begins = self._read_words()
        self._read_context(begins)

    def _read_relations(self):
        """Which pairs of categories relations can have, by relation."""
        size = len(CATEGORIES)
        self.relations = [*RELATIONS]
        self.allowed = np.zeros((len(RELATIONS), size, size), "bool")
        for allowed, (_, pairs) in zip(self.allowed, RELATIONS.values(), strict=True):
            for first, second in pairs:
                allowed[np.ix_(categories(first), categories(second))] = True
                if "*" in (first, second):
                    np.fill_diagonal(allowed, False)

    def _read_implied(self):
        """Which words follow from what evidence."""
        tables = {**IMPLIED, **DONE}
        self.triples = []
        self.implied = [word for words in tables for word in words.split()]
        alternatives, columns = [], []
        for words, texts in tables.items():
            alternatives += [self._parts(text) for text in texts]
            columns += [[word in words.split() for word in self.implied]] * len(texts)
        atoms = len(CATEGORIES) + len(self.triples)
        self.parts = np.zeros((atoms, len(alternatives)), "float32")
        for column, parts in zip(self.parts.T, alternatives, strict=True):
            column[parts] = 1.0
        self.follows = np.array(columns, "float32")

    def _parts(self, text):
        """What an alternative consists of: categories, and relations after them."""
        words = text.split()
        if "+" in words or len(words) == 1:
            return [CATEGORIES.index(named(x)) for x in words if x != "+"]
        first, relation, second = words
        triple = (
            CATEGORIES.index(named(first)),
            self.relations.index(relation),
            CATEGORIES.index(named(second)),
        )
        if triple not in self.triples:
            self.triples.append(triple)
        return [len(CATEGORIES) + self.triples.index(triple)]

    def _read_words(self):
        """Reads the conditions of words and phrases, and the kinds of words."""
        # Number of conditions of each type, in the order in which `ObjectEvidence`
        # computes them.
        sizes = {
            **dict.fromkeys(
                ("always", "each", "is", "are", "a", "an", "the", "top"), 1
            ),
            **dict.fromkeys(("one", "several"), len(CATEGORIES)),
            "implied": len(self.implied),
            "relation": len(RELATIONS),
            "number": len(NUMBERS),
            "said": len(SAID_OF),
        }
        *firsts, total = np.cumsum([0, *sizes.values()])
        first = dict(zip(sizes, firsts, strict=True))
        alone, begins, phrases, kinds = {}, {}, {}, {}

        def add(text, need, place=0, *word_kinds):
            table = phrases if " " in text else alone
            table.setdefault(text, []).append(first[need] + place)
            word, *rest = text.split()
            kinds.setdefault((rest or [word])[0], set()).update(word_kinds)
            if rest and all(x in self.number for x in text.split()):
                begins.setdefault(word, []).append(first[need] + place)

        for text, noun in NOUN.items():
            if noun in SAY_MORE or text in SAY_MORE:
                continue
            place = CATEGORIES.index(CATEGORY[noun])
            if text in PLURALS or text in UNCHANGED:
                kind = "unchanged" if text in UNCHANGED else "several"
                add(text, "several", place, kind)
            if text not in PLURALS:
                kind = "an_one" if text[0] in VOWELS else "one"
                kind = "several" if text in PAIRS else kind
                add(text, "one", place, "unchanged" if text in UNCHANGED else kind)
        for i, word in enumerate(self.implied):
            kind = "an_place" if word[0] in VOWELS else "place"
            kind = "mass" if word in MASS else kind
            add(word, "implied", i, *([] if word in DONE else [kind]))
        for i, word in enumerate(SAID_OF):
            add(word, "said", i)
        for i, word in enumerate(NUMBERS):
            add(word, "number", i)
        governors = {**{name: name for name in RELATIONS}, **GOVERNORS}
        for word, relation in governors.items():
            add(word, "relation", self.relations.index(relation))
        add("sitting", "relation", self.relations.index("at"))
        for category in PAIRS:
            add("pair", "one", CATEGORIES.index(category))
        for word in ("a", "an", "the", "each"):
            add(word, word)
        add("next", "each")
        add("is", "is")
        add("are", "are")
        for text in PHRASES:
            word, second = text.split()
            needs = {"of": "always", "top": "top"}.get(second)
            second = "slope" if second == "covered" else second
            phrases[text] = [first[needs]] if needs else alone.get(second, [0])
            if word in MASS:
                begins.setdefault(word, []).extend(phrases[text])
        for word, kind in KINDS.items():
            kinds.setdefault(word, set()).add(kind)
        kinds["room"] = {"place"}
        kinds["flying"].add("transitive")
        kinds["living"] = {KINDS["living"]}

        # === As matrices ===
        self.alone, self.begins = np.zeros((2, total, self.size), "float32")
        for table, needed in ((self.alone, alone), (self.begins, begins)):
            for word, needs in needed.items():
                if word in self.number:
                    table[needs, self.number[word]] = 1.0
        self.phrases = [
            text for text in phrases if all(x in self.number for x in text.split())
        ]
        ids = [[self.number[x] for x in text.split()] for text in self.phrases]
        ids = ids or [[PAD, PAD]]  # of which no axis is empty
        self.first, self.second = np.array(ids, "int32").T
        # Which conditions hold of a name without an article, and with one.
        self.is_article = self._among(("a", "an")).astype("int32")
        self.agreeing = np.ones((2, total), "float32")
        for row, need in zip(self.agreeing, ("one", "several"), strict=True):
            row[first[need] : first[need] + sizes[need]] = 0.0
        self.needs = np.zeros((total, len(ids)), "float32")
        for column, text in zip(self.needs.T, self.phrases, strict=False):
            column[phrases[text]] = 1.0
        self.completes = np.zeros((len(ids), self.size), "float32")
        self.completes[np.arange(len(ids)), self.second] = 1.0
        # Which tokens may follow each token; PAD is before the first one.
        kinds = {
            self.number[word]: x for word, x in kinds.items() if word in self.number
        }
        kinds[PAD], kinds[EOS] = {"start"}, {"end"}
        successors = {kind: {*text.split()} for kind, text in GRAMMAR.items()}
        names = [*dict.fromkeys(x for of_token in kinds.values() for x in of_token)]
        is_kind = np.zeros((len(names), self.size), "bool")
        for token, token_kinds in kinds.items():
            is_kind[[names.index(kind) for kind in token_kinds], token] = True
        follows = np.zeros((len(names), self.size), "bool")
        for row, kind in zip(follows, names, strict=True):
            after = [names.index(x) for x in successors.get(kind, ()) if x in names]
            row |= is_kind[after].any(axis=0)
        self.is_kind = is_kind.T.astype("float32")
        self.begins_name = self._among(begins)
        takes_name = {
            kind for kind, x in successors.items() if "name" in x and "mass" not in x
        }
        self.takes_name = self._among(x for x, y in KINDS.items() if y in takes_name)
        self.may_follow = follows.astype("float32")
        self.name_follows = np.array(
            [["name" in successors.get(kind, ())] for kind in names], "float32"
        )
        self.to_end = self._words_to_end(is_kind, follows)

        # === Which articles nouns take ===
        known = [x for x in NOUN if all(word in self.number for word in x.split())]
        known = [x for x in known if not {x, NOUN[x]} & SAY_MORE]
        in_plural = [x for x in known if x in PLURALS or x in UNCHANGED]
        self.has_several = np.isin(CATEGORIES, [CATEGORY[NOUN[x]] for x in in_plural])
        known = [x for x in known if x not in PLURALS]
        self.has_one = np.isin(CATEGORIES, [CATEGORY[NOUN[x]] for x in known])
        self.articles = {}
        for article in ("a", "an"):
            taking = [x for x in known if (x[0] in VOWELS) == (article == "an")]
            taking = [x for x in taking if x not in PAIRS]
            of_category = np.isin(CATEGORIES, [CATEGORY[NOUN[x]] for x in taking])
            of_word = [
                word not in MASS and (word[0] in VOWELS) == (article == "an")
                for word in self.implied
            ]
            self.articles[article] = of_category, np.array(of_word)
        self.is_group = np.array([KINDS[word] == "group" for word in NUMBERS])
        return {*begins}

    def _words_to_end(self, is_kind, follows):
        """The least number of words between each token and EOS, int32 `(size,)`.

        It is -1 for EOS, and 0 for tokens that the grammar does not know.

        Args:
            is_kind: bool `(kinds, vocabulary_size)`.
            follows: bool `(kinds, vocabulary_size)`, tokens after each kind.
        """
        known = is_kind.any(axis=0)
        known[self.first] = True
        to_end = np.where(known, self.size, 0).astype("int32")
        to_end[EOS] = -1
        while True:
            of_kind = np.where(follows, to_end, self.size).min(axis=1)
            shorter = np.where(is_kind, 1 + of_kind[:, None], self.size).min(axis=0)
            shorter = np.minimum(to_end, shorter)
            np.minimum.at(shorter, self.first, 1 + to_end[self.second])
            if (shorter == to_end).all():
                return to_end
            to_end = shorter

    def _read_context(self, begins):
        """What words say of those behind them."""
        self.noun = np.zeros(self.size, "int32")  # 0 is none
        self.noun_of_phrase = np.zeros(len(self.first), "int32")
        for text, noun in NOUN.items():
            place = 1 + CATEGORIES.index(CATEGORY[noun])
            if text in begins:
                continue
            if text in self.number:
                self.noun[self.number[text]] = place
            elif text in self.phrases:
                self.noun_of_phrase[self.phrases.index(text)] = place
        several = [{*text.split()[-1:]} for text in PLURALS]
        self.plural = self._among(set().union(*several)).astype("int32")
        self.plural[self._among(UNCHANGED)] = 2
        self.governor = np.zeros(self.size, "int32")  # 0, relations, numbers
        governors = {**{name: name for name in RELATIONS}, **GOVERNORS}
        for word, relation in governors.items():
            if word in self.number and word not in ("of", "sitting"):
                place = 1 + self.relations.index(relation)
                self.governor[self.number[word]] = place
        relations = 1 + len(RELATIONS)
        for i, word in enumerate(NUMBERS):
            if word in self.number:
                self.governor[self.number[word]] = relations + i
        self.of = self.number.get("of", PAD)
        self.bounds = np.array([(x, y or MOST) for x, y in NUMBERS.values()], "int32")
        bounds = [[2, MOST]] * relations + self.bounds.tolist()
        self.least, self.most = np.array(bounds, "int32").T
        self.takes_one = np.arange(len(bounds)) < relations
        self.relation = np.arange(len(bounds), dtype="int32")
        self.relation[relations:] = 0
        # Which implied words may come after each word of a relation.
        self.places = np.zeros((len(bounds), len(self.implied)), "float32")
        for i, relation in enumerate(RELATIONS):
            words = [*IMPLIED_WORDS] if relation == "and" else PLACES.get(relation, "")
            words = words.split() if isinstance(words, str) else words
            self.places[1 + i] = np.isin(self.implied, words)
        self.places[0] = True
        self.leads_to = self.places[1:relations].copy()
        self.leads_to[[self.relations.index(x) for x in ("of", "and")]] = 0.0
        done = np.isin(self.implied, [*DONE])
        self.places[:, done] = 1.0
        self.is_done = done
        self.own_noun = np.array(
            [
                0 if x not in self.number else self.noun[self.number[x]]
                for x in self.implied
            ],
            "int32",
        )
        groups = [words.split() for words in (*IMPLIED, *DONE)]
        self.group = np.zeros(self.size, "int32")
        for i, words in enumerate(groups):
            for word in words:
                if word in self.number:
                    self.group[self.number[word]] = 1 + i
        self.groups = 1 + len(groups)
        self.own_group = np.array(
            [next(1 + i for i, x in enumerate(groups) if w in x) for w in self.implied]
        )
        self.said_of = np.zeros((1 + len(CATEGORIES), len(SAID_OF)), "bool")
        for i, names in enumerate(SAID_OF.values()):
            self.said_of[[1 + x for x in categories(names)], i] = True
        self.of_person = np.isin(self.relations, TRANSITIVE)
        self.predicates = [i for i, x in enumerate(self.relations) if x not in JOINS]

    def _among(self, words):
        """Which tokens are some words, bool `(vocabulary_size,)`."""
        ids = [self.number[word] for word in words if word in self.number]
        return np.isin(np.arange(self.size), ids)


def categories(names: str) -> list[int]:
    """Numbers of the categories of a table's entry."""
    if names == "*":
        return [*range(len(CATEGORIES))]
    return [CATEGORIES.index(named(name)) for name in names.split()]


def named(word: str) -> str:
    return word.replace("_", " ")
