"""Mutations of files for every reader, for as long as one likes: no part of the tests.

    python tests/stress/readers.py --minutes 20                # all readers
    python tests/stress/readers.py --minutes 20 grit ncnn      # some of them

Each round reads mutations of a reader's files, see `tests/formats/test_fuzz.py`, with
another seed, in a process of its own: damage may end a process in C. Minutes are those
of the processor, all readers together; each gets an equal share. Prints the counts of
each reader, and ends with an error if a mutation ended a process, or was refused by
anything but one sentence. Ctrl-C ends it earlier.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import resource
import signal
import sys
import tempfile
import traceback

TESTS = pathlib.Path(__file__).parents[1]
sys.path[:0] = [
    str(TESTS.parent),
    *(str(TESTS / x) for x in ("", "helpers", "formats")),
]

LIMIT, WAIT = 120, 1200  # seconds of the processor, and of the clock, of a round


def run_round(name, folder, seed):
    """Reads mutations in a child.

    Returns:
        Numbers of mutations and of refused ones, or a str that says why it ended.
    """
    from test_fuzz import MUTATIONS, fuzz

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        signal.alarm(WAIT)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            messages = fuzz(name, folder, seed=seed)
            wrong = [x for of in messages.values() for x in of if "\n" in x]
            counts = len(messages) * MUTATIONS, sum(map(len, messages.values()))
            said = wrong[0] if wrong else f"={counts[0]} {counts[1]}"
        except BaseException:
            said = traceback.format_exc(limit=-3)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return tuple(map(int, said[1:].split())) if said.startswith("=") else said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="readers; defaults to all")
    parser.add_argument("--minutes", type=float, default=20, help="of the processor")
    options = parser.parse_args()
    from readers import READERS

    names = options.names or [*READERS]
    rounds, read, refused = (collections.Counter() for _ in range(3))
    spent, failures = collections.Counter(dict.fromkeys(names, 0.0)), []
    with contextlib.suppress(KeyboardInterrupt):
        while spent.total() < 60 * options.minutes and len(failures) < 20:
            name, begun = min(names, key=spent.get), seconds()
            rounds[name] += 1
            with tempfile.TemporaryDirectory() as folder:
                found = run_round(name, pathlib.Path(folder), rounds[name])
            spent[name] += seconds() - begun
            if isinstance(found, str):
                failures.append(name)
                print(f"{name}, seed {rounds[name]}: {found}", flush=True)
            else:
                read[name] += found[0]
                refused[name] += found[1]
    lines = {
        name: (rounds[name], read[name], refused[name], spent[name]) for name in names
    }
    lines["all"] = [*map(sum, zip(*lines.values(), strict=True))]
    for name, (rounds_, read_, refused_, time) in lines.items():
        print(
            f"  {name}: {read_:,} mutations in {rounds_:,} rounds, {refused_:,} "
            f"sentences, {time / 60:.1f} minutes"
        )
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


def seconds():
    """Processor time of this process and of its children."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(x.ru_utime + x.ru_stime for x in map(resource.getrusage, kinds))


if __name__ == "__main__":
    main()
