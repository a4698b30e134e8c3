"""File names as text: some hold ends of lines, or bytes that are not UTF-8."""

import json

from keras_caption.text.normalization import NOT_ON_A_LINE


def to_text(name: str) -> str:
    r"""Makes text of one line, in UTF-8, of a file name.

    A name with ends of lines, with other control characters or with bytes that are not
    UTF-8 becomes a JSON string, in quotation marks, such as `"Mu\udcf1oz.png"`; so does
    a name that begins with a quotation mark.
    """
    is_odd = name.startswith('"') or NOT_ON_A_LINE.search(name)
    return json.dumps(name) if is_odd else name


def from_text(text: str) -> str:
    """The file name that `to_text` made a text of.

    Raises:
        ValueError: If it begins with a quotation mark and is no JSON.
    """
    return json.loads(text) if text.startswith('"') else text
