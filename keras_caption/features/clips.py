import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_caption.errors import InputError
from keras_caption.features.photos import check_size, find_files, resize_photo
from keras_caption.features.sampled_frames import sampled_frames
from keras_caption.formats.faults import reading

SUFFIXES = (
    *(".avi", ".flv", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ogv"),
    *(".ts", ".webm", ".wmv"),
)
# FFmpeg's names. Others are refused: a playlist would open further files or addresses.
FORMATS = "asf,avi,flv,matroska,mov,mpeg,mpegts,ogg"
KNOWN = "AVI, FLV, Matroska, MP4, MPEG, Ogg, QuickTime, WebM or WMV"
LEAST = 0.9  # of what its header announces; a clip that holds less is cut


@dataclasses.dataclass(frozen=True)
class Clip:
    """Frames sampled from a clip.

    Attributes:
        frames: uint8 `(T, size, size, 3)`, RGB, resized to a square.
        times: float32 `(T,)`, seconds from the first frame of the clip.
        height, width: int, of the clip's first frame, in pixels.
    """

    frames: np.ndarray
    times: np.ndarray
    height: int
    width: int


def read_clip(path: str | os.PathLike, num_frames: int, size: int) -> Clip:
    """Samples frames of a clip uniformly, by the rule of `sampled_frames`.

    Frames are counted, and chosen, in the order in which they are shown; at a variable
    frame rate they are not evenly spaced in time. Only frames that were chosen are
    kept, so that memory does not depend on the length of the clip. A rotation that the
    clip asks for is respected.

    Args:
        path: Path of a file that PyAV decodes: AVI, FLV, Matroska, MP4, MPEG, Ogg,
            QuickTime, WebM or WMV, by content and not by name.
        num_frames: int, number of frames; a clip with fewer gives all.
        size: int, height and width that frames are resized to, see `resize_photo`.

    Returns:
        `Clip`.

    Raises:
        InputError: If there is no such file, it is empty, damaged or cut, has no video
            or a single frame, or its frames have too many pixels. What is left of a
            clip that was cut is not read: captions describe the whole.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if not path.stat().st_size:
        raise InputError(f"{path} is empty.")
    with reading(path):
        announced = count_packets(path)
        chosen = sampled_frames(announced, num_frames)
        clip, total = decode(path, chosen, size)
        if total != announced:  # a packet may hold no frame that is shown, or two
            clip, total = decode(path, sampled_frames(total, num_frames), size)
    if total < 2:
        raise InputError(f"{path} has {total} frame; a clip needs at least two.")
    return clip


def count_packets(path: pathlib.Path) -> int:
    """Counts the packets of a clip's video, which usually hold a frame each.

    Raises:
        InputError: If a packet is damaged, or there are fewer than the file announces.
    """
    count, start, end = 0, np.inf, -np.inf
    with open_video(path) as (container, stream):
        for packet in container.demux(stream):
            if not packet.size:
                continue
            if packet.is_corrupt:
                raise InputError(f"{path} is damaged or cut after {count} frames.")
            count += 1
            if packet.pts is not None:
                start = min(start, packet.pts)
                end = max(end, packet.pts + (packet.duration or 0))
        if count < LEAST * stream.frames:
            raise InputError(
                f"{path} is cut: it has {count} of {stream.frames} frames."
            )
        seconds = float((end - start) * stream.time_base) if end > start else 0.0
        announced = (container.duration or 0) / 1e6
        if not stream.frames and seconds < LEAST * announced:
            raise InputError(
                f"{path} is cut: its video lasts {seconds:.1f} of {announced:.1f} s."
            )
    if not count:
        raise InputError(f"{path} has a video without frames.")
    return count


def decode(path: pathlib.Path, chosen: np.ndarray, size: int) -> tuple[Clip, int]:
    """Decodes a clip, and keeps the frames that were chosen.

    Args:
        path: `pathlib.Path` of the clip.
        chosen: Of `sampled_frames`.
        size: Of `read_clip`.

    Returns:
        `Clip`, and the number of frames that were decoded.
    """
    chosen, frames, times = set(chosen.tolist()), [], []
    total, shape = 0, (0, 0)
    with open_video(path) as (container, stream):
        for frame in container.decode(stream):
            time = frame.time
            if time is None:
                time = float(total / (stream.average_rate or 1))
            if not total:
                start = time
            if total in chosen:
                check_size((frame.width, frame.height), str(path))
                pixels = frame.to_ndarray(format="rgb24")
                pixels = np.rot90(pixels, frame.rotation // 90)
                shape = shape if frames else pixels.shape[:2]
                frames.append(np.round(resize_photo(pixels, size)).astype("uint8"))
                times.append(time - start)
            total += 1
    if not total:
        raise InputError(f"{path} has no frame that can be decoded.")
    return Clip(np.array(frames), np.array(times, "float32"), *shape), total


@contextlib.contextmanager
def open_video(path: pathlib.Path) -> Iterator[tuple[Any, Any]]:
    """Opens a clip.

    Yields:
        PyAV's container, and its first video stream.

    Raises:
        InputError: If it is no clip or has no video, its frames have too many pixels,
            or PyAV is not installed.
    """
    try:
        import av
    except ImportError:
        raise InputError("Clips are decoded by PyAV: pip install av.") from None

    options = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
    try:
        # With its protocol, a name with a colon is not taken for an address.
        opened = av.open(f"file:{path}", options=options)
    except av.ArgumentError:
        raise InputError(f"{path} is not a clip ({KNOWN}).") from None
    with opened as container:
        if not container.streams.video:
            raise InputError(f"{path} has no video.")
        stream = container.streams.video[0]
        check_size((stream.width, stream.height), str(path))
        yield container, stream


def find_clips(folder: str | os.PathLike) -> list[pathlib.Path]:
    """Lists all clips in a folder and below it, by their suffixes, sorted.

    Hidden files and folders are passed over.

    Raises:
        InputError: If there is no such folder, or no clip in it.
    """
    return find_files(folder, SUFFIXES, "clip")
