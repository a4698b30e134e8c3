"""Videos, captions and splits, by the files of VATEX, MSR-VTT, MSVD and others."""

import os
import pathlib
from collections.abc import Callable, Sequence

from keras_caption.apps.prepare.matching import join_listings
from keras_caption.base.arguments import check
from keras_caption.base.errors import InputError
from keras_caption.formats.json_files import read_json
from keras_caption.formats.listings import ListedVideo
from keras_caption.formats.msrvtt import list_msrvtt_videos
from keras_caption.formats.msvd import is_msvd, list_msvd_videos
from keras_caption.formats.splits import given_splits
from keras_caption.formats.suffixes import unpacked_suffix
from keras_caption.formats.vatex import Language, list_vatex_videos
from keras_caption.formats.video_captions import list_captioned_videos


def list_videos(
    paths: Sequence[str | os.PathLike], language: Language = "en", strict: bool = False
) -> dict[str, list[ListedVideo]]:
    """Lists the videos of caption files by split, and prints the use of each file.

    Args:
        paths: Sequence of paths of JSON files: VATEX's, one for each split, which is a
            word of the name or given as `"train=PATH"`, `"val=PATH"` or `"test=PATH"`;
            MSR-VTT's `videodatainfo.json`; MSVD's text or CSV, see `list_msvd_videos`;
            or a plain list of `id`, `split` (train, val or test) and `captions`.
        language: `"en"` or `"zh"`, the language of VATEX's captions, see
            `list_vatex_videos`. Defaults to `"en"`.
        strict: bool, whether to raise an error for a caption without words instead of
            skipping it. Defaults to `False`.

    Returns:
        dict from split to a list of `ListedVideo`. A video without captions in a file
        with captions has a `problem` and is skipped when data are prepared.

    Raises:
        InputError: If a file does not follow its format, a video is listed twice, or
            the language is unknown.
    """
    check(Language, language=language)
    listings = {}
    for path, split in given_splits(paths).items():
        read = reader_of(path)
        if read is list_vatex_videos:
            listings[path] = read(path, language, split)
        elif read is list_msvd_videos:
            listings[path] = read(path, split)
        elif split:
            raise InputError(
                f"{path} cannot be for {split} only: it says the split of each video."
            )
        else:
            listings[path] = read(path)
    return join_listings(listings, "video", lambda v: f"video {v.name}", strict)


def reader_of(path: pathlib.Path) -> Callable:
    """Chooses the reader of a caption file by its content."""
    if is_msvd(path):
        return list_msvd_videos
    content = read_json(path, object) if unpacked_suffix(path) == ".json" else None
    if isinstance(content, dict) and "videos" in content:
        return list_msrvtt_videos
    if isinstance(content, list) and content:
        is_vatex = isinstance(content[0], dict) and "videoID" in content[0]
        return list_vatex_videos if is_vatex else list_captioned_videos
    raise InputError(
        f"{path} should list videos: VATEX's JSON, MSR-VTT's, a list of id, split and "
        "captions, or MSVD's text or CSV."
    )
