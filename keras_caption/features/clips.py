import collections
import dataclasses
import os
import pathlib
from typing import Any

import numpy as np

from keras_caption.errors import InputError, missing_extras
from keras_caption.features.photos import check_size, find_files, resize_photo
from keras_caption.features.sampled_frames import sampled_frames
from keras_caption.formats.deadline import check_time
from keras_caption.formats.faults import reading
from keras_caption.formats.folders import CLIPS, existing_path

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
    path = pathlib.Path(existing_path(path))
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if not path.stat().st_size:
        raise InputError(f"{path} is empty.")
    with reading(path):
        index = find_video(path)
        announced = count_packets(path, index)
        chosen = sampled_frames(announced, num_frames)
        clip, total = decode(path, index, chosen, size)
        if total != announced:  # a packet may hold no frame that is shown, or two
            chosen = sampled_frames(total, num_frames)
            clip, total = decode(path, index, chosen, size)
    if total < 2:
        raise InputError(f"{path} has {total} frame; a clip needs at least two.")
    return clip


def find_video(path: pathlib.Path) -> int:
    """Finds the video among the streams of a clip: the first of several pictures.

    Cover art is a stream of one picture, which may stand before the video.

    Returns:
        int, index of the stream.

    Raises:
        InputError: If there is no video, or its frames have too many pixels.
    """
    with open_clip(path) as container:
        videos = [
            stream
            for stream in container.streams.video
            if stream.codec_context and not is_cover(stream)
        ]
        if not videos:
            raise InputError(f"{path} has no video that can be decoded.")
        video = videos[0]
        if len(videos) > 1:
            packets = collections.Counter()
            for packet in container.demux(videos):
                packets[packet.stream_index] += bool(packet.size)
                if packets[video.index] > 1:
                    break
            video = next((v for v in videos if packets[v.index] > 1), video)
        check_size((video.width, video.height), str(path))
        return video.index


def is_cover(stream: Any) -> bool:
    """Whether a stream of a clip is marked as a picture that belongs to it."""
    with missing_extras():
        from av.stream import Disposition

    return Disposition.attached_pic in stream.disposition


def count_packets(path: pathlib.Path, index: int) -> int:
    """Counts the packets of a clip's video that are shown, usually a frame each.

    An edit list of MP4 hides packets, which are not counted. What should be there is
    the duration of the video itself, as its edit list leaves it; sound may be longer.
    Matroska and WebM have a total only: it is that of the longest stream.

    Args:
        path: `pathlib.Path` of the clip.
        index: Of `find_video`.

    Raises:
        InputError: If a packet is damaged, or the file ends before what it announces.
    """
    count, start, end, last = 0, np.inf, -np.inf, 0.0
    with open_clip(path) as container:
        stream = container.streams[index]
        for packet in container.demux():
            check_time(str(path))
            if not packet.size or packet.is_discard:
                continue
            time = packet.dts if packet.pts is None else packet.pts
            if time is not None:
                until = time + (packet.duration or 0)
                last = max(last, float(until * packet.time_base))
            if packet.stream_index != index:
                continue
            if packet.is_corrupt:
                raise InputError(f"{path} is damaged or cut after {count} frames.")
            count += 1
            if time is not None:
                start, end = min(start, time), max(end, until)
        seconds = float((end - start) * stream.time_base) if end > start else 0.0
        if stream.duration:
            announced = float(stream.duration * stream.time_base)
        else:
            seconds, announced = last, (container.duration or 0) / 1e6
        if seconds < LEAST * announced:
            raise InputError(
                f"{path} is cut: it lasts {seconds:.1f} of {announced:.1f} s."
            )
    if not count:
        raise InputError(f"{path} has a video without frames.")
    return count


def decode(
    path: pathlib.Path, index: int, chosen: np.ndarray, size: int
) -> tuple[Clip, int]:
    """Decodes a clip, and keeps the frames that were chosen.

    Args:
        path: `pathlib.Path` of the clip.
        index: Of `find_video`.
        chosen: Of `sampled_frames`.
        size: Of `read_clip`.

    Returns:
        `Clip`, and the number of frames that were decoded.
    """
    chosen, frames, times = set(chosen.tolist()), [], []
    total, shape = 0, (0, 0)
    with open_clip(path) as container:
        stream = container.streams[index]
        for frame in container.decode(stream):
            check_time(str(path))
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


def open_clip(path: pathlib.Path) -> Any:
    """Opens a clip by PyAV, as a container, which is a context manager.

    Raises:
        InputError: If it is no clip, or PyAV is not installed.
    """
    with missing_extras():
        import av

    options = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
    try:
        # With its protocol, a name with a colon is not taken for an address.
        return av.open(f"file:{path}", options=options)
    except av.ArgumentError:
        raise InputError(f"{path} is not a clip ({KNOWN}).") from None


def find_clips(
    folder: str | os.PathLike, passed_over: collections.Counter | None = None
) -> list[pathlib.Path]:
    """Lists all clips in a folder and below it, as `find_photos` lists images."""
    return find_files(folder, CLIPS, "clip", passed_over)
