"""Files of region features in all formats that are read.

`features` is a dict from image id to features and boxes, divided by the image's size.
"""

import base64
import csv
import json

import h5py
import numpy as np

WIDTH, HEIGHT = 200, 100


def text(values):
    return base64.b64encode(np.asarray(values, "<f4").tobytes()).decode()


def in_pixels(boxes):
    return boxes * np.float32([WIDTH, HEIGHT, WIDTH, HEIGHT])


def tsv_row(image_id, regions, boxes):
    pixels = text(in_pixels(boxes))
    return [image_id, WIDTH, HEIGHT, len(regions), pixels, text(regions)]


def write_tsv(path, features):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerows(tsv_row(i, *record) for i, record in features.items())
    return path


def write_vinvl(path, features):
    offsets = []
    with open(path, "w") as file:
        for i, (regions, boxes) in features.items():
            size = boxes[:, 2:] - boxes[:, :2]
            values = np.concatenate([regions, boxes, size], axis=1)
            content = {"num_boxes": len(regions), "features": text(values)}
            offsets.append(file.tell())
            file.write(f"{i}\t{json.dumps(content)}\n")
    path.with_suffix(".lineidx").write_text("".join(f"{o}\n" for o in offsets))
    return path


def write_npz(path, features):
    for kind in ("att", "fc", "box"):
        (path / f"bu_{kind}").mkdir(parents=True, exist_ok=True)
    for i, (regions, boxes) in features.items():
        np.savez_compressed(path / "bu_att" / str(i), feat=regions)
        np.save(path / "bu_fc" / str(i), regions.mean(axis=0))
        np.save(path / "bu_box" / str(i), in_pixels(boxes))
    return path


def write_hdf5(path, features):
    with h5py.File(path, "w") as file:
        for i, (regions, boxes) in features.items():
            file[f"{i}_features"], file[f"{i}_boxes"] = regions, in_pixels(boxes)
    return path


def write_lxmert(path, features):
    """LXMERT's ten fields; ids are COCO's names of photos."""
    with open(path, "w") as file:
        for i, (regions, boxes) in features.items():
            numbers = [text(np.ones(len(regions)))] * 4  # of objects and attributes
            *_, count, pixels, values = tsv_row(i, regions, boxes)
            name = f"COCO_val2014_{i:012}"
            row = [name, HEIGHT, WIDTH, *numbers, count, pixels, values]
            file.write("\t".join(map(str, row)) + "\n")
    return path


def write_mcan(path, features, transposed=False):
    """MCAN's archives, in folders by split; OpenVQA's are transposed."""
    (path / "val2014").mkdir(parents=True, exist_ok=True)
    for i, (regions, boxes) in features.items():
        name = i if isinstance(i, str) else f"COCO_val2014_{i:012}.jpg"
        np.savez_compressed(
            path / "val2014" / f"{name}.npz",
            x=regions.T if transposed else regions,
            bbox=in_pixels(boxes),
            num_bbox=len(boxes),
            image_w=WIDTH,
            image_h=HEIGHT,
            info=np.array({"objects_id": [1]}, dtype=object),
        )
    return path
