import struct

import numpy as np

from keras_caption.formats.declared_colours import DeclaredColours

D50 = np.array([0.9642, 1.0, 0.8249])  # XYZ, to which profiles adapt all colours
BRADFORD = np.array(
    [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]]
)


def colour_profile(colours: DeclaredColours) -> bytes | None:
    """Makes an ICC profile of declared colours.

    Args:
        colours: `keras_caption.formats.declared_colours.DeclaredColours`.

    Returns:
        bytes of a profile of version 4; or `None` if there are no such colours, as the
        primaries lie on a line.
    """
    white = to_xyz(colours.white)
    primaries = np.stack([to_xyz(x) for x in colours.primaries], axis=1)
    if abs(np.linalg.det(primaries)) < 1e-6:
        return None
    primaries = primaries * np.linalg.solve(primaries, white)
    # To D50, by the model of Bradford.
    adapted = np.diag((BRADFORD @ D50) / (BRADFORD @ white)) @ BRADFORD
    primaries = np.linalg.solve(BRADFORD, adapted @ primaries)
    if np.abs(primaries).max() > 100:
        return None

    # === Tags, each content aligned to 4 bytes ===
    kind = {1: 0, 5: 3}[len(colours.curve)]
    curve = b"para" + struct.pack(">4xH2x", kind) + fixed(*colours.curve)
    text = "declared colours".encode("utf-16-be")
    tags = {
        b"desc": b"mluc" + struct.pack(">4xII4sII", 1, 12, b"enUS", len(text), 28),
        b"wtpt": b"XYZ " + bytes(4) + fixed(*D50),
    }
    tags[b"desc"] += text
    for name, column in zip((b"r", b"g", b"b"), primaries.T, strict=True):
        tags[name + b"XYZ"] = b"XYZ " + bytes(4) + fixed(*column)
        tags[name + b"TRC"] = curve
    place, table, body = 132 + 12 * len(tags), b"", b""
    for name, content in tags.items():
        table += struct.pack(">4sII", name, place + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    head = struct.pack(">I4xI", place + len(body), 0x04000000) + b"mntrRGB XYZ "
    head += bytes(12) + b"acsp" + bytes(28) + fixed(*D50)
    return head + bytes(128 - len(head)) + struct.pack(">I", len(tags)) + table + body


def to_xyz(chromaticity: tuple[float, float]) -> np.ndarray:
    """XYZ `(3,)` of a chromaticity, with a luminance Y of 1."""
    x, y = chromaticity
    return np.array([x / y, 1.0, (1 - x - y) / y])


def fixed(*values: float) -> bytes:
    """Numbers as s15Fixed16."""
    return struct.pack(f">{len(values)}i", *(round(65536 * x) for x in values))
