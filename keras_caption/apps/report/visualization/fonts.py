import contextlib
import functools
import unicodedata
from collections.abc import Iterator
from typing import TypeVar

from matplotlib import font_manager
from matplotlib.figure import Figure, SubFigure
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from keras_caption.base.errors import InputError
from keras_caption.base.progress import report

SQUARES = "Last Resort"  # Matplotlib's fallback font, which draws squares


class NoFontError(InputError):
    """No font of the machine has the characters of a figure."""


Drawn = TypeVar("Drawn", bound=Figure | SubFigure)


def find_fonts(figure: Drawn) -> Drawn:
    """Lets the texts of a figure take characters from any font of the machine.

    Matplotlib's own font has no Chinese, Japanese, Korean or Hindi, and shows squares.

    Args:
        figure: `matplotlib.figure.Figure` or `SubFigure`.

    Returns:
        The figure.

    Raises:
        NoFontError: If characters are in no font.
    """
    texts = figure.findobj(Text)
    missing = {c for text in texts for c in text.get_text() if is_shown(c)}
    missing -= characters_of(font_manager.findfont(font_manager.FontProperties()))
    families, fonts = [], font_manager.fontManager.ttflist
    fonts = [entry for entry in fonts if not entry.name.startswith(SQUARES)]
    # Matplotlib takes the upright font of normal weight of a family: try those first.
    for entry in sorted(fonts, key=is_special) if missing else ():
        if has := missing & characters_of(entry.fname):
            families.append(entry.name)
            missing -= has
    if missing:
        some = "".join(sorted(missing)[:10])
        scripts = {unicodedata.name(c, "unknown").split()[0] for c in missing}
        raise NoFontError(
            f"No font of this machine has {some!r} ({', '.join(sorted(scripts))}): "
            "install one, such as Noto Sans, or see the captions in a browser, on a "
            "contact sheet or the page of a run."
        )
    for text in texts if families else ():
        text.set_fontfamily([*text.get_fontfamily(), *families])
    return figure


@contextlib.contextmanager
def without_font() -> Iterator[None]:
    """Reports that the figure of a block lacks a font, and continues without it."""
    try:
        yield
    except NoFontError as error:
        report(f"There is no figure of attention. {error}")


def is_shown(character: str) -> bool:
    """Returns whether a character is visible: no space, control or joiner."""
    return unicodedata.category(character)[0] not in "ZC"


def is_special(entry: font_manager.FontEntry) -> bool:
    """Returns whether a font is slanted, or not of normal weight."""
    return entry.style != "normal" or entry.weight not in (400, "normal", "regular")


@functools.cache
def characters_of(path: str) -> frozenset[str]:
    """Returns the characters of an outline font; none if it cannot be read."""
    try:
        font = FT2Font(path)
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(map(chr, font.get_charmap())) if font.scalable else frozenset()
