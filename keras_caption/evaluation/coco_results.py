from keras_caption.atomic import write_json
from keras_caption.data.coco import read_captions, read_json
from keras_caption.errors import InputError
from keras_caption.evaluation.metrics import score


def read_results(path):
    """Captions of a COCO results file.

    Args:
        path: JSON, a list of objects with `image_id` and `caption`.

    Returns:
        dict from image id to str.

    Raises:
        InputError: If the file is not of this form, or has two captions for an
            image.
    """
    captions = {}
    for number, result in enumerate(read_json(path)):
        if not isinstance(result, dict) or not {"image_id", "caption"} <= set(result):
            raise InputError(
                f"{path}: result number {number} needs image_id and caption."
            )
        if result["image_id"] in captions:
            raise InputError(f"{path}: image {result['image_id']} has two captions.")
        captions[result["image_id"]] = result["caption"]
    return captions


def write_results(path, captions):
    """Writes a COCO results file.

    Args:
        path: Where it goes.
        captions: dict from image id to str.
    """
    write_json(path, [{"image_id": i, "caption": c} for i, c in captions.items()])


def score_files(captions_path, results_path):
    """Scores a COCO results file against a COCO captions file.

    The images of the results file are scored, in the order of the captions file.

    Args:
        captions_path: JSON with `images` and `annotations`.
        results_path: JSON, see `read_results`.

    Returns:
        As `score`.

    Raises:
        InputError: If a file is wrong, or an image of the results has no captions.
    """
    references = read_captions(captions_path)
    results = read_results(results_path)
    for image_id in results:
        if not references.get(image_id):
            raise InputError(
                f"{results_path}: image {image_id} has no captions in {captions_path}."
            )
    captions = {i: results[i] for i in references if i in results}
    print(f"{len(captions):,} of {len(references):,} images have a result")
    return score(captions, references)
