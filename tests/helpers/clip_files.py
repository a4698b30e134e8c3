"""Clips for tests, encoded by PyAV."""

import fractions
import struct

import av
import numpy as np
from av.stream import Disposition

WIDTH, HEIGHT = 64, 48
RATE = 10  # frames a second
SOUND_RATE = 48000


def grey(number):
    """Brightness of a frame: a step for each."""
    return 20 + 8 * (number % 28)


def write_clip(path, frames, *, milliseconds=None, rotation=0, sound=0, cover=False):
    """Writes a clip of grey frames, each brighter than the one before.

    Args:
        path: Path; its suffix is the format.
        frames: int, number of frames.
        milliseconds: Times of the frames. Defaults to a constant rate.
        rotation: int, degrees that players turn the frames.
        sound: Seconds of silence beside the frames.
        cover: bool, whether a stream of one black picture stands before the video.
    """
    codec = "libvpx" if path.suffix == ".webm" else "mpeg4"
    with av.open(str(path), "w") as container:
        if cover:
            art = add_cover(container)
        stream = container.add_stream(codec, rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.gop_size = 4
        stream.codec_context.thread_count = 1  # the same bytes on each machine
        if milliseconds is not None:
            stream.codec_context.time_base = fractions.Fraction(1, 1000)
        if rotation:
            stream.set_display_rotation(rotation)
        if sound:
            silence = container.add_stream("libopus", rate=SOUND_RATE, layout="mono")
            write_silence(container, silence, sound)
        if cover:
            write_cover(container, art)
        for number in range(frames):
            pixels = np.full((HEIGHT, WIDTH, 3), grey(number), "uint8")
            pixels[:, : WIDTH // 4] = 255  # a white bar at the left
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            if milliseconds is not None:
                frame.time_base = fractions.Fraction(1, 1000)
                frame.pts = milliseconds[number]
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_sound(path, cover=False):
    """Writes a file of sound, without video but perhaps with cover art."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mp2", rate=SOUND_RATE, layout="mono")
        if cover:
            art = add_cover(container)
            art.disposition = Disposition.attached_pic
            write_cover(container, art)
        write_silence(container, stream, 1)
    return path


def add_cover(container):
    """Adds a stream for one picture to a container."""
    stream = container.add_stream("mjpeg", rate=RATE)
    stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuvj420p"
    return stream


def write_cover(container, stream):
    """Writes a black picture to a stream."""
    container.mux(stream.encode(av.VideoFrame(WIDTH, HEIGHT, "yuvj420p")))
    container.mux(stream.encode())


def write_silence(container, stream, seconds):
    """Writes seconds of silence to a stream of sound."""
    samples = np.zeros((1, seconds * SOUND_RATE), "int16")
    frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
    frame.sample_rate = SOUND_RATE
    container.mux(stream.encode(frame))
    container.mux(stream.encode())


def show(path, first, frames):
    """Rewrites the edit list of an MP4, so that players show a part of it.

    Args:
        path: Path of what `write_clip` wrote.
        first, frames: int, number of the first frame that is shown, and how many.
    """
    content = bytearray(path.read_bytes())
    at = content.index(b"elst") + 12  # after the name, the version and the count
    scale = int.from_bytes(content[(t := content.index(b"mdhd") + 16) : t + 4])
    milliseconds = 1000 * frames // RATE
    content[at : at + 8] = struct.pack(">II", milliseconds, first * scale // RATE)
    path.write_bytes(content)
    return path
