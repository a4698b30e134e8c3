import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_caption.atomic import write_json
from keras_caption.errors import InputError
from keras_caption.evaluation.metrics import score, table
from keras_caption.evaluation.named_objects import object_scores, text_of_shares
from keras_caption.features import CATEGORIES
from keras_caption.formats.coco import read_captions, read_instances
from keras_caption.formats.coco_results import read_results


def write_results(path: str | os.PathLike, captions: Mapping[Any, str]) -> None:
    """Writes a COCO results file.

    Args:
        path: Path of the file.
        captions: dict from image id, int or str, to str.
    """
    write_json(path, [{"image_id": i, "caption": c} for i, c in captions.items()])


def score_files(
    captions_path: str | os.PathLike,
    results_path: str | os.PathLike,
    spice: bool = False,
    characters: bool = False,
    instances_path: str | os.PathLike | None = None,
) -> tuple[dict[str, float], dict[str, str]]:
    """Scores a COCO results file against a COCO captions file.

    Scores the images that are in both files, in the order of the captions file. Ids are
    compared as text: 7 in one file is "7" in the other. Prints how many images are in
    one file only: the server's c40 captions, for instance, cover some images only.

    Args:
        captions_path: Path of a JSON file with `images` and `annotations`.
        results_path: Path of a results file, see `read_results`.
        spice, characters: See `score`.
        instances_path: Path of a COCO instances file, see `read_instances`. The notes
            then compare captions with its objects, see `object_scores`. Defaults to
            `None`.

    Returns:
        Scores and notes, see `score`.

    Raises:
        InputError: If a file does not follow its format, or no image is in both.
    """
    references = {
        str(i): texts for i, texts in read_captions(captions_path).items() if texts
    }
    results = {str(i): text for i, text in read_results(results_path).items()}
    captions = {i: results[i] for i in references if i in results}
    if not captions:
        raise InputError(
            f"{results_path}: none of its images has captions in {captions_path}."
        )
    by = " by characters" if characters else ""
    print(
        f"{len(captions):,} images are scored{by}; "
        f"{len(references) - len(captions):,} in {captions_path} have no result, "
        f"{len(results) - len(captions):,} results no captions there"
    )
    objects = None if instances_path is None else objects_of(instances_path, captions)
    scores, notes = score(captions, references, spice, characters)
    if objects is not None:
        shares = object_scores(captions, references, objects)
        notes["objects of COCO"] = text_of_shares(shares)
    return scores, notes


def objects_of(
    path: str | os.PathLike, image_ids: Iterable[str]
) -> dict[str, set[str]]:
    """Reads the categories of images from a COCO instances file.

    Args:
        path: Path of the file.
        image_ids: Image ids as text.

    Raises:
        InputError: If the file does not follow its format, has another number of
            categories than COCO, or lacks an image.
    """
    categories, objects = read_instances(path)
    if len(categories) != len(CATEGORIES):
        raise InputError(
            f"{path} has {len(categories)} categories; {len(CATEGORIES)} are expected, "
            "as COCO has."
        )
    name = dict(zip(categories, CATEGORIES, strict=True))
    names = {str(i): {name[category] for category, _ in x} for i, x in objects.items()}
    missing = [i for i in image_ids if i not in names]
    if missing:
        raise InputError(f"{path} lacks image {missing[0]}, which has a caption.")
    return names


def score_table(
    captions_paths: Sequence[str | os.PathLike],
    results_path: str | os.PathLike,
    spice: bool = False,
    characters: bool = False,
    instances_path: str | os.PathLike | None = None,
) -> str:
    """Scores a COCO results file against several captions files such as c5 and c40.

    Args:
        captions_paths: Sequence of paths of captions files, see `score_files`.
        results_path: Path of a results file, see `read_results`.
        spice, characters: See `score`.
        instances_path: See `score_files`.

    Returns:
        str, a Markdown table with a row for each captions file, followed by the notes
        on its metrics, see `score`.

    Raises:
        InputError: As `score_files`.
    """
    rows, labels_of = {}, {}
    paths = [pathlib.Path(path) for path in captions_paths]
    distinct = len({path.stem for path in paths}) == len(paths)
    for path in paths:
        label = path.stem if distinct else str(path)
        rows[label], notes = score_files(
            path, results_path, spice, characters, instances_path
        )
        for name, note in notes.items():
            labels_of.setdefault(f"{name}: {note}", []).append(label)
    lines = [
        note if len(labels) == len(rows) else f"{', '.join(labels)}, {note}"
        for note, labels in labels_of.items()
    ]
    return "\n".join([table(rows), *lines])
