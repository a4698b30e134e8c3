import bisect
import functools
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict, Unpack

from keras_caption.atomic import write_json
from keras_caption.errors import InputError
from keras_caption.evaluation.caption_diversity import DIVERSITY, diversity
from keras_caption.evaluation.captions import normalize
from keras_caption.evaluation.clip_score import CLIP_METRICS, ClipScorer
from keras_caption.evaluation.metric import (
    METRICS,
    check_metric_names,
    known_metrics,
)
from keras_caption.evaluation.metrics import score, table
from keras_caption.evaluation.tables import text_of_shares
from keras_caption.formats.coco import (
    read_captions,
    read_domains,
    read_instances,
    read_names,
)
from keras_caption.formats.coco_results import read_result_lists, read_results
from keras_caption.objects.categories import CATEGORIES
from keras_caption.registration import given

# Greatest lengths of the levels of Deng et al., "Length-Controllable Image Captioning",
# ECCV 2020, on COCO; longer captions are a row of their own.
LEVELS = (9, 14, 19, 25)


class ChosenMetrics(TypedDict, total=False):
    """The metrics of a table, see `score_files`."""

    metrics: Sequence[str] | None
    clip: ClipScorer | None


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
    metrics: Sequence[str] | None = None,
    clip: ClipScorer | None = None,
) -> tuple[dict[str, float], dict[str, str]]:
    """Scores a COCO results file against a COCO captions file.

    Scores the images that are in both files, in the order of the captions file. Ids are
    compared as text: 7 in one file is "7" in the other. Prints how many images are in
    one file only: the server's c40 captions, for instance, cover some images only.

    Args:
        captions_path: Path of a JSON file with `images` and `annotations`.
        results_path: Path of a results file, see `read_results`; or, for metrics of
            diversity, `read_result_lists`, of which the other metrics score the first
            caption of each image.
        spice, characters: See `score`.
        instances_path: Path of a COCO instances file, see `read_instances`. The notes
            then compare captions with its objects, see `object_scores`. Defaults to
            `None`.
        metrics: Sequence of str: names in `METRICS`, of `register_metric`, in
            `DIVERSITY` of `keras_caption.evaluation.caption_diversity`, and in
            `CLIP_METRICS` of `keras_caption.evaluation.ClipScorer`. Only these are
            computed, and SPICE if `spice` says so. Defaults to those in `METRICS`,
            without SPICE.
        clip: `ClipScorer`, which the last ones need.

    Returns:
        Scores and notes, see `score`.

    Raises:
        InputError: If a file does not follow its format, no image is in both, or there
            is no such metric.
    """
    check_names(metrics, clip)
    results = read_several(results_path, metrics)
    images = ScoredImages(captions_path, results_path, results, characters)
    return images.score(spice, instances_path, metrics, clip)


def check_names(
    metrics: Sequence[str] | None = None, clip: ClipScorer | None = None
) -> None:
    """Raises `InputError` if a metric is unknown, or lacks what it needs."""
    check_metric_names(metrics or (), (*DIVERSITY, *CLIP_METRICS))
    for name in metrics or ():
        if name in CLIP_METRICS and clip is None:
            raise InputError(f"{name} needs a preset of CLIP, and the photos.")


def read_several(
    path: str | os.PathLike, metrics: Sequence[str] | None
) -> dict[str, list[str]]:
    """Reads results as metrics need them: one caption of an image, or several.

    Returns:
        dict from image id as text to a list of str.
    """
    if {*(metrics or ())} & {*DIVERSITY}:
        return {str(i): texts for i, texts in read_result_lists(path).items()}
    return {str(i): [text] for i, text in read_results(path).items()}


class ScoredImages:
    """The images of a captions file that have results.

    Args:
        captions_path, results_path, characters: Of `score_files`.
        results: dict from image id as text to a list of str.

    Raises:
        InputError: If the file does not follow its format, or none has results.
    """

    def __init__(
        self,
        captions_path: str | os.PathLike,
        results_path: str | os.PathLike,
        results: Mapping[str, list[str]],
        characters: bool,
    ):
        self.path = captions_path
        self.characters = characters
        self.references = {
            str(i): texts for i, texts in read_captions(captions_path).items() if texts
        }
        self.captions = {i: results[i] for i in self.references if i in results}
        if not self.captions:
            raise InputError(
                f"{results_path}: none of its images has captions in {captions_path}."
            )
        by = " by characters" if characters else ""
        print(
            f"{len(self.captions):,} images are scored{by}; "
            f"{len(self.references) - len(self.captions):,} in {captions_path} have no "
            f"result, {len(results) - len(self.captions):,} results no captions there"
        )

    @functools.cached_property
    def lengths(self) -> dict[str, list[str]]:
        """Ids, as text, of the images whose caption has a length of `LEVELS`."""
        starts = [1, *(end + 1 for end in LEVELS)]
        by_length: dict[str, list[str]] = {}
        noun = "characters" if self.characters else "words"
        labels = [
            *(f"{a}-{b} {noun}" for a, b in zip(starts, LEVELS, strict=False)),
            f"{starts[-1]} or more {noun}",
        ]
        for image_id, [caption, *_] in self.captions.items():
            length = len(normalize(caption, self.characters).split())
            label = labels[bisect.bisect_left(LEVELS, length)]
            by_length.setdefault(label, []).append(image_id)
        return {
            f"{label} ({len(by_length[label]):,})": by_length[label]
            for label in labels
            if label in by_length
        }

    @functools.cached_property
    def domains(self) -> dict[str, list[str]]:
        """Ids, as text, of the images of each domain of nocaps; none of other files."""
        domains = read_domains(self.path)
        by_domain: dict[str, list[str]] = {x: [] for x in sorted({*domains.values()})}
        for image_id, name in domains.items():
            if str(image_id) in self.captions:
                by_domain[name].append(str(image_id))
        return {name: ids for name, ids in by_domain.items() if ids}

    def score(
        self,
        spice: bool,
        instances_path: str | os.PathLike | None,
        metrics: Sequence[str] | None,
        clip: ClipScorer | None,
        ids: Iterable[str] | None = None,
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Scores all images, or those of some ids, see `score_files`."""
        ids = self.captions if ids is None else ids
        several = {i: self.captions[i] for i in ids}
        captions = {i: texts[0] for i, texts in several.items()}
        references = self.references
        objects = None if instances_path is None else objects_of(instances_path, ids)
        scores: dict[str, float] = {}
        notes: dict[str, str] = {}
        in_coco = (
            None if metrics is None else [x for x in metrics if x in known_metrics()]
        )
        asked = {*(metrics or ())}
        if in_coco is None or in_coco or spice:
            scores, notes = score(captions, references, spice, self.characters, in_coco)
        if asked & {*DIVERSITY}:
            scores |= diversity(several, references)
        if clip is not None and asked & {*CLIP_METRICS}:
            names = {str(i): x for i, x in read_names(self.path).items()}
            scores |= clip.score(names, captions, references)
        if objects is not None:
            object_scores = given("keras_caption.evaluation", "object_scores")
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
    by_length: bool = False,
    **chosen: Unpack[ChosenMetrics],
) -> str:
    """Scores a COCO results file against several captions files such as c5 and c40.

    A file of nocaps, whose images have domains, has a row for each, and one for all.
    The document frequencies of CIDEr-D are those of a row's images.

    By length, a file has a row for the images whose caption has 1 to 9, 10 to 14, 15
    to 19, 20 to 25 and more words, with their number, and one for all. These are the
    levels of Deng et al., "Length-Controllable Image Captioning", ECCV 2020.

    Args:
        captions_paths: Sequence of paths of captions files, see `score_files`.
        results_path: Path of a results file, see `score_files`.
        spice, characters: See `score`.
        instances_path: See `score_files`.
        by_length: bool, whether rows are of lengths, not of domains. Defaults to
            `False`.
        **chosen: `metrics` and `clip`, see `score_files`.

    Returns:
        str, a Markdown table with a row for each captions file, followed by the notes
        on its metrics, see `score`.

    Raises:
        InputError: As `score_files`.
    """
    check_names(**chosen)
    metrics, clip = chosen.get("metrics"), chosen.get("clip")
    results, columns = read_several(results_path, metrics), [*(metrics or METRICS)]
    if spice and "SPICE" not in columns:
        columns.append("SPICE")
    rows: dict[str, dict[str, float]] = {}
    labels_of: dict[str, list[str]] = {}
    paths = [pathlib.Path(path) for path in captions_paths]
    distinct = len({path.stem for path in paths}) == len(paths)
    for path in paths:
        images = ScoredImages(path, results_path, results, characters)
        parts = images.lengths if by_length else images.domains
        for part, ids in (*parts.items(), (None, None)):
            label = path.stem if distinct else str(path)
            label = f"{label}, {part}" if part else label
            rows[label], notes = images.score(spice, instances_path, metrics, clip, ids)
            for name, note in notes.items():
                if name in columns or name not in METRICS:
                    labels_of.setdefault(f"{name}: {note}", []).append(label)
    lines = [
        note if len(labels) == len(rows) else f"{', '.join(labels)}, {note}"
        for note, labels in labels_of.items()
    ]
    return "\n".join([table(rows, columns), *lines])
