r"""Adds captions without images to COCO's annotations, each with a layout of objects.

    python experiments/text_layouts.py coco_val2017 --texts flickr30k_captions \
        --leave_out flickr8k_1000/dataset_flickr8k.json --output_dir coco_and_texts

copies the annotations, and writes photos of which only captions are known beside them,
for training: `captions_texts.json`, `instances_texts.json` and a split of all. Captions
are those of `train.1.en.gz` and so on, of the photos whose names `train_images.txt` has
by line. The objects of a photo are the categories that at least two of its captions
name. Their boxes are those of training images of COCO: of an image that has most of
the categories, then of others for what is missing. Captions with a word that the
training split has fewer than five times are left out, so that the vocabulary is that of
COCO alone; photos keep at least three captions.
"""

import collections
import itertools
import json
import pathlib
import shutil

import numpy as np
from keras_caption.objects import CATEGORIES

from keras_caption.apps.objects.object_words import mentions, said_several
from keras_caption.apps.prepare.listing import list_images
from keras_caption.base.atomic import creating
from keras_caption.base.errors import InputError
from keras_caption.commands.command_line import Parser, new_file, start
from keras_caption.datasets.coco import CocoFiles, read_annotations
from keras_caption.formats.text_lines import lines
from keras_caption.text import split_words

LEAST_COUNT = 5  # of a word in the training split, as configurations of COCO have it
LEAST_CAPTIONS = 3  # of a photo
NAMED_BY = 2  # captions that name an object of a photo
SIZE = 1000  # width and height, in pixels, of a photo that nobody has seen


def main(arguments):
    parser = Parser("experiments/text_layouts.py", __doc__)
    parser.add_argument("coco", type=pathlib.Path, help="folder of annotations")
    parser.add_argument(
        "--texts", type=pathlib.Path, required=True, help="folder of the captions"
    )
    parser.add_argument("--leave_out", help="Karpathy's file of photos to leave out")
    parser.add_argument(
        "--photos", type=int, default=4000, help="greatest number; default 4000"
    )
    parser.add_argument("--seed", type=int, default=0, help="of boxes and photos")
    parser.add_argument("--output_dir", type=new_file, required=True)
    options = parser.parse_args(arguments)
    files = CocoFiles.find(options.coco)
    category_ids, records = read_annotations(files)
    known = known_words(captions for _, captions, _ in records["train"])
    photos = list(read_texts(options.texts, numbers_in(options.leave_out), known))
    rng = np.random.default_rng(options.seed)
    photos = [photos[i] for i in rng.permutation(len(photos))[: options.photos]]
    layouts = Layouts(records["train"], dict(enumerate(category_ids)), rng)
    folder = pathlib.Path(options.output_dir)
    folder.mkdir()
    for path in (*files.captions, *files.instances):
        shutil.copy(path, folder)
    contents = contents_of(photos, layouts, category_ids)
    split = contents["karpathy_split"]["images"]
    split += [
        {"cocoid": i, "split": name} for name in records for i, _, _ in records[name]
    ]
    for name, content in contents.items():
        with creating(folder / f"{name}.json") as partial:
            pathlib.Path(partial).write_text(json.dumps(content), "utf-8")
    print(f"{len(photos):,} photos of which only captions are known")


def known_words(captions):
    """The words that are often enough in captions of images to be in a vocabulary."""
    words = map(split_words, itertools.chain.from_iterable(captions))
    counts = collections.Counter(itertools.chain.from_iterable(words))
    return {word for word, count in counts.items() if count >= LEAST_COUNT}


def numbers_in(path):
    """The numbers with which the names of a file's photos begin, as Flickr's do."""
    records = list_images([path]) if path else {}
    return {number_of(x.file_name) for x in itertools.chain(*records.values())}


def number_of(name):
    return pathlib.PurePath(name).stem.partition("_")[0]


def read_texts(folder, left_out, known):
    """Yields the captions of each photo that keeps enough, and names an object."""
    paths = sorted(folder.glob("train.?.en.gz"))
    if not paths:
        raise InputError(f"There is no train.1.en.gz in {folder}.")
    columns = [list(lines(path)) for path in (folder / "train_images.txt", *paths)]
    if len(set(map(len, columns))) > 1:
        raise InputError(f"The files of captions in {folder} differ in their lines.")
    for name, *texts in zip(*columns, strict=True):
        texts = [x for x in texts if known.issuperset(split_words(x))]
        kept = number_of(name) not in left_out and len(texts) >= LEAST_CAPTIONS
        if kept and objects_of(texts):
            yield texts


def objects_of(texts):
    """Pairs of a category that enough captions name, and whether there are several."""
    named, several = collections.Counter(), collections.Counter()
    for text in texts:
        named.update({category for _, category in mentions(text)})
        several.update(said_several(text))
    return {
        (category, 2 * several[category] > count)
        for category, count in named.items()
        if count >= NAMED_BY
    }


class Layouts:
    """Boxes for objects of which only the categories are known.

    Args:
        records: List of (image id, captions, objects) of COCO's training images.
        category_ids: dict from the number of a category to its id.
        rng: NumPy's random generator.
    """

    def __init__(self, records, category_ids, rng):
        self.rng = rng
        self.ids = {CATEGORIES[number]: id_ for number, id_ in category_ids.items()}
        names = {id_: name for name, id_ in self.ids.items()}
        self.boxes = []  # for each image, boxes by category
        # Places in `boxes` of the images of one object and of several, by category.
        self.images = collections.defaultdict(set)
        for _, _, objects in records:
            boxes = collections.defaultdict(list)
            for category_id, box in objects:
                boxes[names[category_id]].append(np.array(box))
            for category, of_category in boxes.items():
                several = (False, True) if len(of_category) > 1 else (False,)
                for pair in itertools.product([category], several):
                    self.images[pair].add(len(self.boxes))
            self.boxes.append(boxes)

    def draw(self, objects):
        """Yields the id of a category and a box, x1, y1, x2, y2 in [0, 1].

        Args:
            objects: As `objects_of`.
        """
        # Where no image has several of a category, one of it serves.
        known = {x: bool(several and self.images[x, True]) for x, several in objects}
        missing = {pair for pair in known.items() if self.images[pair]}
        while missing:
            images = itertools.chain.from_iterable(self.images[x] for x in missing)
            counts = collections.Counter(images)
            most = max(counts.values())
            best = sorted(i for i, count in counts.items() if count == most)
            chosen = best[self.rng.integers(len(best))]
            boxes = self.boxes[chosen]
            there = sorted(x for x in missing if chosen in self.images[x])
            for category, several in there:
                # People speak of the largest; of several, all that the image has.
                largest = max(boxes[category], key=lambda x: np.prod(x[2:] - x[:2]))
                kept = boxes[category] if several else [largest]
                yield from ((self.ids[category], box) for box in kept)
            missing -= set(there)


def contents_of(photos, layouts, category_ids):
    """The contents of the files that are written, by name."""
    images, captions, objects, split = [], [], [], []
    for number, texts in enumerate(photos, start=1):
        image_id = -number  # COCO's are positive
        images.append({"id": image_id, "width": SIZE, "height": SIZE})
        split.append({"cocoid": image_id, "split": "train"})
        captions += [{"image_id": image_id, "caption": text} for text in texts]
        for category_id, (x1, y1, x2, y2) in layouts.draw(objects_of(texts)):
            objects.append(
                {
                    "image_id": image_id,
                    "category_id": category_id,
                    "bbox": (SIZE * np.array([x1, y1, x2 - x1, y2 - y1])).tolist(),
                }
            )
    return {
        "captions_texts": {"images": images, "annotations": captions},
        "instances_texts": {
            "images": images,
            "annotations": objects,
            "categories": [{"id": id_} for id_ in category_ids],
        },
        "karpathy_split": {"images": split},
    }


if __name__ == "__main__":
    start(main)
