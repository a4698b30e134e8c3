"""Trains on disks that fill up, and two runs at once in one folder.

    sudo python tests/endurance/full_disk.py [--disks 6] [--rounds 4] [--seed 0]

A run is trained whole. Then runs of the same settings are trained on file systems
in memory, which Linux lets root mount, of a random part of its size: each must end with
one sentence, and leave whole files from which it is resumed, once there is room, to the
whole run bit by bit. Then three processes begin the same run at once, a random part of
a second apart: one must finish, as the whole run, and the others end with one sentence.

A process takes about 15 s on two idle cores: 7 minutes.
"""

import argparse
import contextlib
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from kill_training import check_same, check_whole, command_of, run, write_data

KIND = "cross_entropy"


@contextlib.contextmanager
def mounted(folder, size):
    """A file system of some bytes, in memory."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(["mount", *options], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder, whole, rng):
    """Trains on a disk of a part of what a run takes, and resumes with more room.

    Returns:
        Whether the disk was full.
    """
    needed = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
    size = rng.randint(needed // 20, needed)
    with mounted(folder / f"disk_{size}", size) as disk:
        status, printed = run(KIND, folder / "data", disk / "run", "never")
        if status:
            [line] = [x for x in printed.splitlines() if x.startswith("error: ")]
            assert "No space left on device" in line, printed[-3000:]
            assert "Traceback" not in printed
            check_whole(disk / "run")
            room = ["-o", f"remount,size={100 * needed}", str(disk)]
            subprocess.run(["mount", *room], check=True)
            again, printed = run(KIND, folder / "data", disk / "run", "never")
            assert again == 0, printed[-3000:]
        check_same(whole, disk / "run")
    return bool(status)


def begin_together(folder, whole, number, rng):
    """Begins the same run three times at once; returns how many were refused."""
    output = folder / f"shared_{number}"
    command, environment = command_of(KIND, folder / "data", output, "never")
    processes = []
    for _ in range(3):
        processes.append(
            subprocess.Popen(
                command,
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
        time.sleep(rng.random())
    printed = [process.communicate()[0] for process in processes]
    ended = [process.returncode for process in processes]
    refused = [text for text in printed if "Another process is writing to" in text]
    assert sorted(ended) == [0] + [1] * len(refused), printed
    # One that comes when the run is finished has nothing to do.
    assert len(refused) >= 1
    assert all("Traceback" not in text for text in printed)
    check_same(whole, output)
    return len(refused)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--disks", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    if os.geteuid():
        sys.exit("error: only root may mount the disks.")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "data").mkdir()
        write_data(folder / "data")
        status, printed = run(KIND, folder / "data", folder / "whole", "never")
        assert status == 0, printed[-3000:]
        whole = folder / "whole"
        full = sum(fill(folder, whole, rng) for _ in range(options.disks))
        print(f"{options.disks} disks, {full} full, all resumed to the whole run")
        refused = sum(
            begin_together(folder, whole, i, rng) for i in range(options.rounds)
        )
        print(f"{options.rounds} folders of three runs each, {refused} runs refused")
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
