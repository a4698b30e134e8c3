"""The effects that the papers report, and where ours of them are.

`SETTLED` are those of at least five seeds, with their controls; `EARLIER` those of
three seeds. `experiments/claims.py` says which came out.
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


EARLIER = (
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
            ("", ("areas, begun at a third", "plain attention")),
            (", pre-norm blocks", ("pre-norm at a third", "pre-norm plain")),
        )
    ),
)


def _nsa(file, layers):
    """NSA over objects as pixels."""
    return Claim(
        *(f"NSA, L = {layers}", "ngsan_1", ("N-SAN", "SAN"), (file,)),
        rows=(f"L={layers} N-SAN", f"L={layers} SAN"),
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
SETTLED = (
    _nsa("effects_nsa", 1),
    _nsa("effects_nsa_deep", 4),
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
)
