"""The commit of the library's code, for the records of runs."""

import functools
import pathlib
import subprocess

FOLDER = pathlib.Path(__file__).parents[1]
CODE = (":/", ":(top,exclude)docs", ":(top,exclude)*.md")  # of git's pathspecs


@functools.cache
def commit(folder: pathlib.Path = FOLDER) -> str | None:
    """Returns the git commit that a folder of code is of.

    Args:
        folder: `pathlib.Path`. Defaults to the folder of the library.

    Returns:
        str, the abbreviated hash, with `-dirty` if tracked files were changed; those
        of documents, which training itself may write, do not count. `None` if there is
        no git, or if the folder is not of a repository, as where the library is
        installed.
    """
    try:
        # An installed library may lie in the repository of something else.
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        name = _git(folder, "rev-parse", "--short=10", "HEAD")
        changed = _git(folder, "diff", "--name-only", "HEAD", "--", *CODE)
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{name}-dirty" if changed else name


def _git(folder, *command):
    done = subprocess.run(
        ["git", "-C", folder, *command], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
