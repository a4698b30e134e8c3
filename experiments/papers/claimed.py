"""The effects that the papers report, and where ours of them are.

`CLAIMS` are all comparisons, `PRIMARY` the few that were declared before their runs of
five seeds or more were trained, one for each headline claim of the papers, and
`HEADLINES` what docs/results/effects.md begins with. `experiments/claims.py` says which
came out.
"""

from typing import NamedTuple

from keras_caption.papers import TABLES


class Claim(NamedTuple):
    """An effect: one row of a table over another.

    Attributes:
        effect: What it is of.
        table: Name of the paper's table in `keras_caption.papers.TABLES`; `""` of an
            effect that the paper gives no number of, and of a control.
        labels: Labels of the two rows there, with the effect and without.
        files: CSV files of ours in docs/results, whose rows have these labels, or the
            names of their models.
        column: The score there.
        rows: Names of our two rows, where they are others.
        layers: Depth of the paper's rows, where a table has several.
        premise: Effect, of another claim, without which this one means nothing: that
            its base trains as well as the paper's.
        is_none: Whether the paper's claim is that there is no effect.
        data: The dataset, where a file of ours has several.
    """

    effect: str
    table: str
    labels: tuple
    files: tuple
    column: str = "CIDEr-D"
    rows: tuple = ()
    layers: int | None = None
    premise: str = ""
    is_none: bool = False
    data: str = ""

    @property
    def paper(self):
        """The paper's effect, in points; `None` where it gives no number."""
        if not self.table:
            return None
        one, other = (row.scores for row in self.published_rows)
        name = PUBLISHED.get(self.column, self.column)
        return one[name] - other[name]

    @property
    def published_rows(self):
        """The paper's rows with the effect and without."""
        rows = [
            row
            for row in TABLES[self.table].rows
            if self.layers in (None, row.overrides.get("model.num_layers"))
        ]
        return [next(x for x in rows if x.label == label) for label in self.labels]

    @property
    def names(self):
        """Names of our two rows, a tuple of alternatives for each."""
        if self.rows:
            return [(row,) for row in self.rows]
        return [(row.label, row.model) for row in self.published_rows]


PUBLISHED = {"all": "accuracy"}  # columns of ours that have another name
BOTH = ("coco_objects", "scenes")
AOA = ("aoanet_4", "aoanet_4_scenes")
QUESTIONS = ("coco_qa", "photos_coco_qa", "photos_vqa")
NO_EFFECT = "eight heads for one"
PREMISES = {"AoA over an LSTM, eight heads": "an LSTM in the decoder, eight heads"}


def before_and_after(effect, effect_after, *labels):
    """The claims of captioners before self-critical training, and after it."""
    models_of_rows = {row.label: row.model for row in TABLES["ngsan_6"].rows}
    rows = tuple(f"{models_of_rows[label]} + SCST" for label in labels)
    return (
        Claim(effect, "ngsan_6", labels, BOTH),
        Claim(effect_after, "ngsan_6", labels, BOTH, rows=rows),
    )


CAPTIONED = (
    *before_and_after("GSA (SAN to G-SAN)", "GSA, after SCST", "G-SAN", "SAN"),
    *before_and_after("NSA (SAN to N-SAN)", "NSA, after SCST", "N-SAN", "SAN"),
    *before_and_after(
        "NSA with GSA (G-SAN to NG-SAN)", "NSA with GSA, after SCST", "NG-SAN", "G-SAN"
    ),
    Claim("IN over LN", "ngsan_2", ("IN", "LN"), ("ngsan_2",)),
    Claim("IN over BN", "ngsan_2", ("IN", "BN"), ("ngsan_2",)),
    Claim("queries over keys normalized", "ngsan_3", ("query", "key"), ("ngsan_3",)),
    Claim(
        "absolute positions",
        "ngsan_4",
        ("absolute", "SAN"),
        ("ngsan_4", "effects_size"),
        is_none=True,
    ),
    Claim(
        "content-independent GSA",
        "ngsan_4",
        ("content-independent", "SAN"),
        ("ngsan_4",),
    ),
    Claim(
        "query-dependent over content-independent GSA",
        "ngsan_4",
        ("query-dependent", "content-independent"),
        ("ngsan_4",),
    ),
    Claim(
        "NSA over frames",
        "ngsan_7",
        ("+ NSA", "Transformer"),
        ("moving_scenes_parts", "msvd"),
    ),
    Claim(
        "GSA in MCAN",
        "ngsan_9",
        ("+ GSA, test-std", "MCAN (Ours), test-std"),
        QUESTIONS,
        "all",
        ("mcan_gsa, query", "mcan"),
    ),
    Claim(
        *("GSA in MCAN, planned", "ngsan_9"),
        ("+ GSA, test-std", "MCAN (Ours), test-std"),
        ("effects_questions",),
        "accuracy",
    ),
    *(
        Claim(
            *(effect, "aoanet_4", tuple(labels), files),
            premise=PREMISES.get(effect, ""),
            is_none=effect == NO_EFFECT,
        )
        for effect, files, *labels in (
            ("refining without AoA", AOA, "+ Enc: Refine (w/o AoA)", "Base"),
            (
                "AoA in refining",
                AOA,
                "+ Enc: Refine (w/ AoA)",
                "+ Enc: Refine (w/o AoA)",
            ),
            ("AoA in the decoder, one head", AOA, "+ Dec: AoA", "Base"),
            (
                "an LSTM in the decoder, one head",
                (*AOA, "effects_size"),
                "+ Dec: LSTM",
                "Base",
            ),
            ("eight heads for one", AOA[:1], "+ Dec: MH-Att", "Base"),
            (
                "AoA in the decoder, eight heads",
                AOA[:1],
                "+ Dec: MH-Att, AoA",
                "+ Dec: MH-Att",
            ),
            (
                "an LSTM in the decoder, eight heads",
                AOA[:1],
                "+ Dec: MH-Att, LSTM",
                "+ Dec: MH-Att",
            ),
            (
                "AoA over an LSTM, eight heads",
                AOA,
                "+ Dec: MH-Att, AoA",
                "+ Dec: MH-Att, LSTM",
            ),
            (
                "refining in the full model",
                AOA,
                "Full: AoANet",
                "+ Dec: MH-Att, AoA",
            ),
        )
    ),
    *(
        Claim(
            f"areas, subwords, {languages}",
            "area_2",
            (f"Tiny, area, {languages}", f"Tiny, regular, {languages}"),
            ("area_2",),
            "BLEU",
        )
        for languages in ("En-De", "En-Fr")
    ),
    *(
        Claim(
            f"areas that begin smaller, En-De{blocks}",
            "area_2",
            ("Tiny, area, En-De", "Tiny, regular, En-De"),
            ("effects_areas",),
            "BLEU",
            rows,
        )
        for blocks, rows in (
            ("", ("post smaller start", "post plain")),
            (", pre-norm blocks", ("pre smaller start", "pre plain")),
        )
    ),
)


def _nsa(effect, file, layers):
    """NSA over objects as pixels."""
    return Claim(
        *(effect, "ngsan_1", ("N-SAN", "SAN"), (file,)),
        rows=(f"L={layers} N-SAN", f"L={layers} SAN"),
        layers=layers,
    )


def _depth(layers):
    """NSA by the number of layers, Table 1."""
    return Claim(
        *(f"NSA, Table 1, L = {layers}", "ngsan_1", ("N-SAN", "SAN")),
        ("ngsan_1", "ngsan_1_scenes"),
        rows=tuple(f"{x}, num_layers={layers}" for x in ("N-SAN (nsan)", "SAN (san)")),
        layers=layers,
    )


def _gsa(places, data):
    """GSA, by what features know of places."""
    return Claim(
        *(f"GSA, {places}", "ngsan_6", ("G-SAN", "SAN"), ("effects_boxes",)),
        rows=("G-SAN", "SAN"),
        data=data,
    )


def _control(effect, file, *rows, **more):
    return Claim(f"control: {effect}", "", (), (file,), rows=rows, **more)


GATE, WIDE = "gate of the query", "two linear layers"
TINY = "Tiny, {}, En-De (transformer_tiny{})".format
NSA, GSA = "NSA, 36 regions, L = 1", "GSA, after SCST: coco_objects"
AREAS, TEMPERATURE = "areas of characters, pre-norm blocks", "the temperature, 9 x 9"
CLAIMS = (
    _nsa(NSA, "effects_proposals", 1),
    _nsa("NSA, 36 regions, L = 4", "effects_proposals", 4),
    _nsa("NSA, 36 regions, pre-norm blocks, L = 1", "effects_proposals_pre", 1),
    _nsa("NSA, 36 regions, pre-norm blocks, L = 4", "effects_proposals_pre", 4),
    *(
        _control(f"{norm}, 36 regions", "effects_proposals", f"L=1 {norm}", "L=1 SAN")
        for norm in ("centred only", "noisy", "noise alone")
    ),
    _nsa("NSA, L = 1", "effects_nsa", 1),
    _nsa("NSA, L = 4", "effects_nsa_deep", 4),
    *map(_depth, (1, 2, 4, 6)),
    _gsa("features know no place", "unplaced_scenes"),
    _gsa("features know all places", "placed_scenes"),
    _control(
        *("boxes of other regions", "effects_boxes", "G-SAN", "SAN"),
        data="shuffled_scenes",
    ),
    Claim(
        *("AoA, 60 % of what is asked is absent", "aoanet_4", ("+ Dec: AoA", "Base")),
        ("effects_gates",),
        rows=("AoA", "linear"),
    ),
    _control("a gate of the query alone", "effects_gates", GATE, "linear"),
    _control("AoA over that gate", "effects_aoa", "AoA", GATE),
    _control("two linear layers", "effects_gates", WIDE, "linear"),
    _control("AoA over two linear layers", "effects_aoa", "AoA", WIDE),
    *CAPTIONED,
    Claim(
        *("NSA in translation", "ngsan_8", ("+ NSA", "Transformer-Base"), ("area_2",)),
        "BLEU",
        (TINY("NSA", "_nsa"), TINY("regular", "")),
    ),
    Claim(
        *("AoA over frames", "aoanet_video", ("Decoder with AoA", "Base")),
        ("moving_scenes_parts", "msvd"),
    ),
    Claim(
        *(AREAS, "area_1", ("Tiny, area, En-Fr", "Tiny, regular, En-Fr")),
        ("effects_areas_characters",),
        "BLEU",
        ("pre areas", "pre plain"),
    ),
    Claim(
        TEMPERATURE, "", (), ("effects_temperature_9",), rows=("temperature", "none")
    ),
    Claim(
        *("the temperature, prepared scenes", "", (), ("effects_temperature",)),
        rows=("temperature", "none"),
    ),
)
# Names, as `experiments.claims.name_of` gives them.
PRIMARY = (
    *(NSA, GSA, "AoA in the decoder, one head: aoanet_4"),
    *(AREAS, TEMPERATURE),
)


class Headline(NamedTuple):
    """A line of the table that docs/results/effects.md begins with.

    Attributes:
        claim: What the paper claims.
        effect: Name of the comparison that stands for it, or `""` if there is none.
        verdict: The verdict that the reason was written for.
        why: The reason, in some fifty characters. `{smallest}` stands for the smallest
            effect that 80 % of such comparisons would find.
        paper: The paper's effect, where there is no comparison.
    """

    claim: str
    effect: str
    verdict: str
    why: str
    paper: str = ""


NONE = "no verdict"
HEADLINES = (
    Headline(
        "NSA gains (NG-SAN, Table 1, one layer)",
        *("NSA, L = 1", "cannot be told"),
        "ten seeds see {smallest}",
    ),
    Headline(
        "GSA gains (NG-SAN, Table 6)",
        *("GSA, features know no place", "came out"),
        "boxes alone say where regions are",
    ),
    Headline(
        "and so where features know places",
        *("GSA, features know all places", "reversed"),
        "plain attention learns more of the features",
    ),
    Headline(
        "NSA adds to GSA (NG-SAN, Table 6)",
        *("NSA with GSA, after SCST: coco_objects", "cannot be told"),
        "three seeds see {smallest}",
    ),
    Headline(
        "IN gains over LN (NG-SAN, Table 2)",
        *("IN over LN", "cannot be told"),
        "three seeds see {smallest}",
    ),
    Headline(
        "queries, not keys, are normalized (Table 3)",
        *("queries over keys normalized", "cannot be told"),
        "three seeds see {smallest}",
    ),
    Headline(
        "absolute positions bring nothing (Table 4)",
        *("absolute positions: effects_size", "cannot be told"),
        "with features of size 0.1 they cost 19",
    ),
    Headline(
        "NSA gains over frames (NG-SAN, Table 7)",
        *("NSA over frames: moving_scenes_parts", "cannot be told"),
        "three seeds see {smallest}",
    ),
    Headline(
        "NSA gains in translation (NG-SAN, Table 8)",
        *("NSA in translation", "cannot be told"),
        "of Tiny: two cores are too few for Base",
    ),
    Headline(
        "GSA gains in MCAN (NG-SAN, Table 9)",
        *("GSA in MCAN: coco_qa", "cannot be told"),
        "three seeds see {smallest}",
    ),
    Headline(
        "AoA gains (AoANet, Table 4, decoder)",
        *("AoA, 60 % of what is asked is absent", "came out"),
        "other layers larger than a linear one do too",
    ),
    Headline(
        "refining and AoA add up (AoANet, Table 4)",
        *("refining in the full model: aoanet_4", "came out"),
        "not on scenes: level there",
    ),
    Headline(
        "four models gain over one (AoANet, Table 1)",
        *("", NONE, "one ensemble, an example: +2.8 after SCST", "+2.2"),
    ),
    Headline(
        "AoANet counts better (AoANet, section 4.3)",
        *("", NONE, "captions of scenes hardly count"),
    ),
    Headline(
        "AoA gains over frames (AoANet, section 4.6)",
        *("AoA over frames: moving_scenes_parts", "came out"),
        "three seeds; the decoder is an LSTM's",
    ),
    Headline(
        "areas of characters gain (Area, Table 1)",
        *("", NONE, "one seed, of a start since replaced", "+2.3"),
    ),
    Headline(
        "areas of subwords gain (Area, Table 2)",
        *("areas that begin smaller, En-De", "cannot be told"),
        "three seeds see {smallest}",
    ),
    Headline(
        "areas gain in an LSTM (Area, Table 3)",
        *("", NONE, "one seed, of two: an example", "0.00"),
    ),
    Headline(
        "areas of a grid gain (Area, Table 4)",
        *("", NONE, "needs photos of COCO and Flickr, not at hand", "+1.2"),
    ),
    Headline(
        "the temperature helps (Spatial)",
        *("the temperature, prepared scenes", "cannot be told"),
        "the paper has no number; three seeds see {smallest}",
    ),
    Headline(
        "attention to a grid captions (Spatial, Table 1)",
        *("", NONE, "needs the network and photos of the paper"),
    ),
)
