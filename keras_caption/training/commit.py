"""The commit of the library's code, for the records of runs."""

import functools
import pathlib
import subprocess

FOLDER = pathlib.Path(__file__).parents[1]


@functools.cache
def commit(folder: pathlib.Path = FOLDER) -> str | None:
    """Returns the git commit that a folder of code is of.

    Args:
        folder: `pathlib.Path`. Defaults to the folder of the library.

    Returns:
        str, the abbreviated hash, with `-dirty` if tracked files were changed. `None`
        if there is no git, or if the folder is not of a repository, as where the
        library is installed.
    """
    try:
        # An installed library may lie in the repository of something else.
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        return _git(
            folder, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(folder, *command):
    done = subprocess.run(
        ["git", "-C", folder, *command], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
