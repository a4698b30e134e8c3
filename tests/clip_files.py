"""Clips for tests, encoded by PyAV."""

import fractions

import av
import numpy as np

WIDTH, HEIGHT = 64, 48
RATE = 10  # frames a second


def grey(number):
    """Brightness of a frame: a step for each."""
    return 20 + 8 * (number % 28)


def write_clip(path, frames, *, milliseconds=None, rotation=0):
    """Writes a clip of grey frames, each brighter than the one before.

    Args:
        path: Path; its suffix is the format.
        frames: int, number of frames.
        milliseconds: Times of the frames. Defaults to a constant rate.
        rotation: int, degrees that players turn the frames.
    """
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.gop_size = 4
        if milliseconds is not None:
            stream.codec_context.time_base = fractions.Fraction(1, 1000)
        if rotation:
            stream.set_display_rotation(rotation)
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


def write_sound(path):
    """Writes a file of sound, without video."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        sound = np.zeros((1, 8000), "int16")
        frame = av.AudioFrame.from_ndarray(sound, format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path
