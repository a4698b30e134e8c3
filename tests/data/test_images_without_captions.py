import json

import h5py
import numpy as np

import keras_caption as kc


def test_images_without_captions_are_skipped_and_counted(tmp_path):
    images = [
        {"id": i, "file_name": f"{i}.jpg", "width": 9, "height": 9} for i in (1, 2)
    ]
    captions = [{"image_id": 1, "caption": "A dog."}]
    path = tmp_path / "captions_train.json"
    path.write_text(json.dumps({"images": images, "annotations": captions}))
    with h5py.File(tmp_path / "features.h5", "w") as file:
        for i in (1, 2):
            file[f"{i}_features"] = np.ones((1, 4), "float32")
            file[f"{i}_boxes"] = np.array([[0, 0, 9, 9]], "float32")
    manifest = kc.data.prepare_regions(
        kc.data.list_images([path]),
        [kc.data.open_regions(tmp_path / "features.h5")],
        tmp_path / "out",
    )
    assert manifest["splits"]["train"] == {"listed": 2, "prepared": 1}
    assert manifest["features"]["with_captions"] == 1
    assert manifest["features"]["without_captions"] == 1
    assert f"{path}: image 2 has no captions." in json.dumps(manifest)
