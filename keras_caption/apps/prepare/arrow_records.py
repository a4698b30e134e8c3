import functools
import pathlib

from keras_caption.apps.prepare.matching import use_of
from keras_caption.apps.prepare.own_captions import split_by_hash
from keras_caption.apps.prepare.photo_records import PhotoRecord, refuse
from keras_caption.base.errors import InputError
from keras_caption.features import read_photo
from keras_caption.formats.arrow_folder import captions_of, image_bytes, open_arrow
from keras_caption.formats.skipped import report
from keras_caption.formats.splits import SPLITS, splits_in


def records_of_arrow(
    folder: pathlib.Path, strict: bool = False
) -> dict[str, list[PhotoRecord]]:
    """Lists the records of a dataset of Hugging Face on disk by split.

    The images are numbered in the order of the rows. The photos of a dataset without
    splits are sorted by hash, see `split_by_hash`.

    Args:
        folder: `pathlib.Path` of what `save_to_disk` wrote.
        strict: bool, whether to raise an error for a caption without words instead of
            skipping it.

    Returns:
        dict from split to a list of `PhotoRecord`, see `records_of_photos`.

    Raises:
        InputError: If the dataset is damaged, has no images or captions, or the split
            of a part is unclear.
    """
    records: dict[str, list[PhotoRecord]] = {split: [] for split in SPLITS}
    skipped: list[str] = []
    number = 0
    for part in open_arrow(folder):
        captions = captions_of(folder, part, skipped)
        named = splits_in(part)
        if part and len(named) != 1:
            raise InputError(
                f"{folder}: its part {part!r} should be called train, validation or "
                "test."
            )
        names = [f"{part or 'row'} {i}" for i in range(len(captions))]
        hashed = {} if part else split_by_hash(names)
        for i, (name, texts) in enumerate(zip(names, captions, strict=True)):
            where = f"{folder}, {name}"
            read = functools.partial(read_image, folder, part, i, where)
            if not texts:
                read = functools.partial(refuse, f"{where} has no captions.")
            split = named[0] if part else hashed[name]
            records[split].append(PhotoRecord(number, where, read, texts))
            number += 1
    report(skipped, strict)
    print(f"{folder}: {use_of(records, 'image')}")
    if not number:
        raise InputError(f"{folder} has no images.")
    return records


def read_image(folder: pathlib.Path, part: str, number: int, where: str):
    """Reads the pixels of a row, uint8 `(height, width, 3)`."""
    return read_photo(image_bytes(folder, part, number), where)
