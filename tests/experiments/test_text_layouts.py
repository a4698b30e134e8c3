"""Captions without images beside COCO's annotations, of experiments/text_layouts.py."""

import gzip
import json

import numpy as np
import pytest
from coco_files import contents, write

import keras_caption as kc
from experiments import text_layouts
from keras_caption.datasets.coco import CocoFiles, read_annotations


def test_captions_without_images_get_boxes_of_what_they_name(tmp_path, capsys):
    captions, instances, split = contents()
    for x in instances["annotations"][:3]:  # an image of the training split has two
        x |= {"image_id": 10, "category_id": 7}
    for x in captions["annotations"]:
        x["caption"] = "two cars and a person sit on the grass"
    coco, texts = tmp_path / "coco", tmp_path / "texts"
    write(coco, captions, instances, split)
    texts.mkdir()
    (texts / "train_images.txt").write_text("1.jpg\n2.jpg\n3.jpg\n4.jpg\n")
    of_photos = (
        ["two cars sit", "cars sit on grass", "a person and cars", "an unknown word"],
        ["a car on the grass"] * 4,  # in the file of what is left out
        ["a person sit", "a person", "unknown", "words"],  # two captions are too few
        ["the grass"] * 4,  # which is no object
    )
    for number, column in enumerate(zip(*of_photos, strict=True), start=1):
        with gzip.open(texts / f"train.{number}.en.gz", "wt") as file:
            file.write("\n".join(column) + "\n")
    left_out = tmp_path / "dataset_flickr8k.json"
    image = {"imgid": 0, "filename": "2_0af3.jpg", "split": "test"}
    image["sentences"] = [{"raw": "a car"}]
    left_out.write_text(json.dumps({"images": [image]}))
    arguments = [str(coco), "--texts", str(texts), "--leave_out", str(left_out)]
    text_layouts.main([*arguments, "--output_dir", str(tmp_path / "both")])
    assert "1 photos of which only captions are known" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="exists already"):
        text_layouts.main([*arguments, "--output_dir", str(tmp_path / "both")])
    categories, records = read_annotations(CocoFiles.find(tmp_path / "both"))
    _, before = read_annotations(CocoFiles.find(coco))
    assert records["val"] == before["val"]
    assert records["test"] == before["test"]
    (_, kept, objects), *others = records["train"]
    assert others == before["train"]
    assert kept == ["two cars sit", "cars sit on grass", "a person and cars"]
    car = categories[kc.objects.CATEGORIES.index("car")]
    assert {category for category, _ in objects} == {car}
    boxes = sorted(box for _, box in objects)
    layouts = [
        sorted(box for category, box in of_image if category == car)
        for _, _, of_image in others
    ]
    assert len(boxes) > 1
    assert any(
        len(boxes) == len(layout) and np.allclose(boxes, layout, atol=1e-5)
        for layout in layouts
    )
