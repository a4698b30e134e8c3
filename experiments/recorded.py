"""What a run's folder records of it, and whether it can be resumed."""

import keras_caption as kc
from keras_caption.formats.runs import read_begun, read_scores

# Settings that may change on resume. How long captions are decides what self-critical
# training samples.
FREE = {
    "cross-entropy": ("decoding", "training.epochs"),
    "self-critical": (
        "decoding.beam_size",
        "decoding.length_penalty",
        "self_critical.epochs",
    ),
}


def is_finished(folder, about):
    """Whether a folder holds a run with the settings `about`, trained and scored.

    Raises:
        InputError: If `config.json` or `test_scores.json` is damaged.
    """
    if not (folder / "test_scores.json").exists():
        return False
    read_scores(folder)
    recorded = read_begun(folder) or {}
    return all(key in recorded and recorded[key] == x for key, x in about.items())


def refuse_used(folder):
    """Raises `InputError` if a folder holds files of a run."""
    for name in ("config.json", "last.keras", "best.keras"):
        if (folder / name).exists():
            raise kc.InputError(
                f"{folder} holds a run already: resume it with --resume, or name "
                "another --output_dir."
            )


def refuse_others(folder, about):
    """Raises `InputError` if the run in a folder has other settings than `about`."""
    recorded = read_begun(folder)
    if recorded is None:
        return
    begun, now = lasting(recorded), lasting(about)
    others = [
        f"{name}={begun.get(name)}, not {now.get(name)}"
        for name in begun | now
        if begun.get(name) != now.get(name)
    ]
    if others:
        raise kc.InputError(
            f"The run in {folder} was begun with {'; '.join(others)}. It resumes with "
            "the same settings; other settings need another --output_dir."
        )


def lasting(about):
    """The settings that must not change on resume, a flat dict."""
    names = ("dataset", "seed", "precision", "strategy", "objective")
    free = FREE[about["objective"]]
    start = sorted(about.get("start", {}).values())  # digests: a run may have moved
    return (
        {name: about.get(name) for name in names}
        | {"start": start}
        | {
            f"{group}.{name}": value
            for group, values in about["config"].items()
            for name, value in values.items()
            if group not in free and f"{group}.{name}" not in free
        }
    )
