import collections
import dataclasses
import os
import pathlib
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.features.photos import check_size, find_files, resize_photo
from keras_caption.features.sampled_frames import sampled_frames
from keras_caption.formats.deadline import check_time
from keras_caption.formats.faults import check_file, reading
from keras_caption.formats.folders import CLIPS, existing_path

# FFmpeg's names of the formats that are read. A playlist, for example, is refused: it
# would open further files or addresses.
FORMATS = "asf,avi,flv,matroska,mov,mpeg,mpegts,ogg"
KNOWN = "AVI, FLV, Matroska, MP4, MPEG, Ogg, QuickTime, WebM or WMV"
# Share of the announced duration that a clip must have; with less it counts as cut.
LEAST = 0.9


@dataclasses.dataclass(frozen=True)
class Clip:
    """Frames sampled from a clip.

    Attributes:
        frames: uint8 `(T, size, size, 3)`, RGB, resized to a square.
        times: float32 `(T,)`, seconds from the first frame of the clip.
        height, width: int, size of the clip's first frame, in pixels.
    """

    frames: np.ndarray
    times: np.ndarray
    height: int
    width: int


def read_clip(path: str | os.PathLike, num_frames: int, size: int) -> Clip:
    """Samples frames of a clip uniformly, by the rule of `sampled_frames`.

    Frames are counted and chosen in the order in which they are shown; at a variable
    frame rate they are not evenly spaced in time. Only chosen frames are kept, so that
    memory does not depend on the length of the clip. Frames are rotated as the clip's
    metadata say.

    Args:
        path: Path of a file that PyAV decodes: AVI, FLV, Matroska, MP4, MPEG, Ogg,
            QuickTime, WebM or WMV. The content decides the format, not the name.
        num_frames: int, number of frames. All frames of a shorter clip are read.
        size: int, height and width of resized frames, see `resize_photo`.

    Returns:
        `Clip`.

    Raises:
        InputError: If there is no such file, it is empty, damaged or cut, has no video
            or a single frame, or its frames have too many pixels. The rest of a cut
            clip is not read, since a caption describes the whole.
    """
    path = pathlib.Path(existing_path(path))
    check_file(path)
    if not path.stat().st_size:
        raise InputError(f"{path} is empty.")
    with reading(path):
        index = find_video(path)
        announced = count_packets(path, index)
        chosen = sampled_frames(announced, num_frames)
        clip, total = decode(path, index, chosen, size)
        if total != announced:  # a packet may hold no visible frame, or two
            chosen = sampled_frames(total, num_frames)
            clip, total = decode(path, index, chosen, size)
    if total < 2:
        raise InputError(f"{path} has {total} frame; a clip needs at least two.")
    return clip


def find_video(path: pathlib.Path) -> int:
    """Finds the video among the streams of a clip: the first with several frames.

    Cover art is a stream with one frame, which may come before the video.

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
            packets: collections.Counter[int] = collections.Counter()
            for packet in container.demux(videos):
                packets[packet.stream_index] += bool(packet.size)
                if packets[video.index] > 1:
                    break
            video = next((v for v in videos if packets[v.index] > 1), video)
        check_size((video.width, video.height), str(path))
        return video.index


def is_cover(stream: Any) -> bool:
    """Whether a stream of a clip is marked as attached picture, such as cover art."""
    with missing_extras():
        from av.stream import Disposition

    return Disposition.attached_pic in stream.disposition


def count_packets(path: pathlib.Path, index: int) -> int:
    """Counts the visible packets of a clip's video, usually one for each frame.

    Packets that an edit list of MP4 hides are not counted. The duration of the packets
    is compared with the announced duration of the video, after its edit list; sound may
    be longer. Matroska and WebM announce the duration of the longest stream only: it is
    compared with the last packet of any stream.

    Args:
        path: `pathlib.Path` of the clip.
        index: int, index of the video's stream.

    Raises:
        InputError: If a packet is damaged, or the file is shorter than announced.
    """
    count, start, end, last = 0, np.inf, -np.inf, 0.0
    with open_clip(path) as container:
        stream = container.streams[index]
        for packet in container.demux():
            check_time(str(path))
            if not packet.size or packet.is_discard:
                continue
            # AVI has times of decoding only.
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
            # In microseconds: FFmpeg's AV_TIME_BASE.
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
    """Decodes a clip, and keeps chosen frames.

    Args:
        path: `pathlib.Path` of the clip.
        index: int, index of the video's stream.
        chosen: int array, numbers of frames, as `sampled_frames` returns it.
        size: int, height and width of resized frames.

    Returns:
        `Clip`, and the number of decoded frames.
    """
    numbers = {*chosen.tolist()}
    frames: list[np.ndarray] = []
    times: list[float] = []
    total, shape = 0, (0, 0)
    with open_clip(path) as container:
        stream = container.streams[index]
        for frame in container.decode(stream):
            check_time(str(path))
            time = frame.time
            if time is None:  # a raw stream: by the frame rate
                time = float(total / (stream.average_rate or 1))
            if not total:
                start = time
            if total in numbers:
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
        # With the protocol before it, a name with a colon is no address.
        return av.open(f"file:{path}", options=options)
    except av.ArgumentError:
        raise InputError(f"{path} is not a clip ({KNOWN}).") from None


def find_clips(
    folder: str | os.PathLike, passed_over: collections.Counter | None = None
) -> list[pathlib.Path]:
    """Lists all clips in a folder and below it, as `find_photos` lists images."""
    return find_files(folder, CLIPS, "clip", passed_over)
