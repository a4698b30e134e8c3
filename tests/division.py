"""Divides the tests into quick and slow ones, by what was measured.

    python -m pytest --record durations.txt      # all tests, or some of them
    python tests/division.py durations.txt       # lists what moved
    python tests/division.py durations.txt --write

A test is slow that takes 2 s of processor time or more by itself: `slow_tests.txt`
lists these, `make test-rest` runs them, and `make test` all others. Tests that were not
measured stay where they are; to move those of a file, measure all of them. Measure on
an idle machine.
"""

import argparse
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent / "helpers"))

from durations import LIMIT, SLOW, is_slow, read_seconds

HEADER = """\
# Tests that take 2 s of processor time or more, with these seconds, `inf` where none
# were measured yet; `make test-rest` runs them. Written by tests/division.py.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("durations", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="write slow_tests.txt")
    options = parser.parse_args()
    before, measured = read_seconds(SLOW), read_seconds(options.durations)
    slow = {name: x for name, x in measured.items() if x >= LIMIT}
    for name, seconds in measured.items():
        if is_slow(name, before) != (name in slow):
            print(f"{seconds:8.2f} s {'slow' if name in slow else 'quick'} now: {name}")
    quick = sum(measured.values()) - sum(slow.values())
    print(
        f"{len(measured) - len(slow):,} quick tests take {quick:,.0f} s of processor "
        f"time, {len(slow):,} slow ones {sum(slow.values()):,.0f} s."
    )
    if options.write:
        done = {*measured, *(name.partition("::")[0] for name in measured)}
        kept = {name: x for name, x in before.items() if name not in done}
        lines = [f"{x:.2f} {name}\n" for name, x in sorted((kept | slow).items())]
        SLOW.write_text(HEADER + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
