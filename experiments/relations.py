r"""Counts how often relations in captions are true, by what a person saw in the photos.

    keras-caption caption photos --detector yolox_nano.keras --output now.jsonl
    python experiments/relations.py before.jsonl now.jsonl \
        --seen experiments/relations_seen.csv

The file --seen is that of `experiments/actions.py`. Where several words are of one
relation, it is judged once in a photo. "Object missing" is not there as the caption
names it; its relation is neither right nor wrong. What is unclear counts for nothing.
"""

import collections
import json
import pathlib
import re

from experiments.actions import read_seen
from keras_caption.apps.objects.actions import ANIMALS, RIDDEN
from keras_caption.apps.objects.object_words import PATTERN, category_of
from keras_caption.apps.objects.sure_actions import SPORTS
from keras_caption.commands.command_line import Parser, start
from keras_caption.evaluation import markdown_table

NOUN = PATTERN.pattern
# From each relation to what of a caption says it: the last noun before, and the next.
SAID = {
    "sitting": r"sitting",
    "riding": "|".join(("riding", "on top of", "on", *SPORTS)),
    "standing": r"standing",
    "holding": r"holding",
    "playing": r"playing|flying",
    "wearing": r"wearing",
    "on": r"(?:sitting )?(?:on top of|on)",
}
OF = {"on": ("cat", "dog"), "standing": ANIMALS}  # others are of persons


def main(arguments):
    parser = Parser("experiments/relations.py", __doc__)
    parser.add_argument("files", nargs="+", help="captions, in .jsonl")
    parser.add_argument("--seen", required=True, help="file of what was seen")
    options = parser.parse_args(arguments)
    seen = read_seen(options.seen)
    header, columns = ["relation"], [[name] for name in SAID]
    for path in options.files:
        header += [f"{pathlib.Path(path).stem}: said", "right", "object missing"]
        with open(path, encoding="utf-8") as file:
            captions = [json.loads(line) for line in file]
        for row in columns:
            counts = collections.Counter(
                seen[row[0]].get(pathlib.Path(x["photo"]).stem)
                for x in captions
                if says(row[0], x["caption"] or "")
            )
            judged = sum(counts[x] for x in ("yes", "no", "some"))
            row += [judged, counts["yes"], counts["other"]]
    print(markdown_table(header, columns))


def says(relation, caption):
    """Whether a caption says a relation of what `OF` has."""
    for match in re.finditer(
        rf"(?P<who>{NOUN})(?: is| are)? (?P<verb>{SAID[relation]})(?!\S)(?P<rest>.*)",
        caption,
    ):
        if category_of(match["who"]) not in OF.get(relation, ("person",)):
            continue
        what = re.match(rf" (?:\w+ )?({NOUN})", match["rest"])
        is_ridden = what and category_of(what[1]) in RIDDEN
        if relation != "riding" or is_ridden or not match["verb"].startswith("on"):
            return True
    return False


if __name__ == "__main__":
    start(main)
