"""A tiny dataset in COCO's formats, for tests of its readers."""

import json

import numpy as np

NAMES = ["person", "dog", "ball"]


def contents(images=12, seed=0):
    """Contents of the three files: captions, instances, split."""
    rng = np.random.default_rng(seed)
    listed = [{"id": 10 + i, "width": 640, "height": 480} for i in range(images)]
    captions, objects, split = [], [], []
    for i, image in enumerate(listed):
        kinds = rng.integers(0, 3, size=1 + i % 4)
        for kind in kinds:
            x, y = rng.uniform(0, 300, 2).round(2)
            objects.append(
                {
                    "id": 5_000_000 + len(objects),
                    "image_id": image["id"],
                    "category_id": int(3 * kind + 1),
                    "bbox": [x, y, 100.0, 50.0],
                    "iscrowd": 0,
                }
            )
        for number in range(5):
            names = " and a ".join(NAMES[kind] for kind in sorted(set(kinds)))
            captions.append(
                {
                    "id": len(captions),
                    "image_id": image["id"],
                    "caption": f"A {names}{', again' * number}.",
                }
            )
        part = "val" if i % 4 == 2 else "test" if i % 4 == 3 else "train"
        if i == 1:
            part = "restval"
        split.append({"cocoid": image["id"], "split": part})
    categories = [{"id": 3 * k + 1, "name": name} for k, name in enumerate(NAMES)]
    return (
        {"images": listed, "annotations": captions},
        {"images": listed, "annotations": objects, "categories": categories},
        {"images": split},
    )


def write(folder, captions, instances, split):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {
        "captions_tiny.json": captions,
        "instances_tiny.json": instances,
        "dataset_tiny.json": split,
    }.items():
        (folder / name).write_text(json.dumps(content))
    return folder
