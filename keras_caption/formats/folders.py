"""Which files of a folder are data."""

import pathlib


def list_files(
    folder: pathlib.Path, suffixes: tuple[str, ...] = ("",), below: bool = False
) -> list[pathlib.Path]:
    """Lists the regular, visible files of some suffixes in a folder, sorted.

    Hidden files and folders, whose names begin with a dot, hold no data: macOS writes
    `._dog.jpg` beside `dog.jpg`. Folders and pipes are no files, whatever their names;
    a pipe would be waited for.

    Args:
        folder: `pathlib.Path`.
        suffixes: tuple of str, in lower case; those of files may be in any case.
            Defaults to all files.
        below: bool, whether to list the files of all folders below it too. Defaults to
            `False`.

    Returns:
        List of `pathlib.Path`; empty if there is no such folder.
    """
    paths = folder.rglob("*") if below else folder.glob("*")
    return sorted(
        path
        for path in paths
        if path.name.lower().endswith(suffixes)
        and not any(name.startswith(".") for name in path.relative_to(folder).parts)
        and path.is_file()
    )
