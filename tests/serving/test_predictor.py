"""What a model makes of records, as servers and pages ask for it."""

import io

import keras
import numpy as np
import pytest
from conftest import random_images, tiny
from keras_caption.compilation import compile_function
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.apps.objects.object_words import least_score
from keras_caption.apps.serve.records import clip_of
from keras_caption.models import compiled_searches
from keras_caption.settings import decoding

QUESTION = kc.text.QuestionTokenizer(["is", "it", "red"])


@pytest.fixture(scope="module")
def detector(tmp_path_factory):
    path = tmp_path_factory.mktemp("detector") / "yolox.keras"
    white_yolox(image_size=None).save(path)
    return str(path)


@pytest.fixture(scope="module")
def of_objects(detector):
    """A captioner of detected objects."""
    keras.utils.set_random_seed(0)
    sizes = {**tiny("ngsan"), "region_dim": 80, "num_layers": 1}
    model = kc.models.create(
        "ngsan",
        vocabulary=kc.text.Vocabulary(["dog", "a", "dogs"]),
        categories=list(kc.objects.CATEGORIES),
        **sizes,
    )
    model.decoding = model.decoding.override(max_length=4)
    model.threshold = 0.999
    return kc.serving.Predictor(model, detector)


def png(*cells, size=(416, 416)):
    file = io.BytesIO()
    Image.fromarray(photo(*size, cells)).save(file, "png")
    return file.getvalue()


def test_warm_beams_wait_for_no_compilation(of_objects, monkeypatch):
    model, compiled = of_objects.model.members[0], []

    def counting(function, *args):
        compiled.append(function)
        return compile_function(function, *args)

    monkeypatch.setattr(compiled_searches, "compile_function", counting)
    predictor = kc.serving.Predictor(model)
    monkeypatch.setattr(kc.serving.Predictor, "signatures", {})  # which take seconds
    predictor.warm_up([1])
    assert len(compiled) == 2  # for its own width, and that one
    record = {"regions": np.eye(80)[:3], "boxes": [[0, 0, 1, 1]] * 3}
    predictor([record], beam_size=1)
    assert len(compiled) == 2


def test_photos_of_any_sizes_are_captioned_together(of_objects, monkeypatch):
    monkeypatch.setattr(of_objects, "details", False)  # photos without colours
    assert of_objects.reads == ("photo", "regions", "boxes", "region_mask")
    photos = [png((3, 4), (20, 30)), png(), png((9, 9), size=(208, 416))]
    found = of_objects([{"photo": x} for x in photos], n=2, attention=True)
    assert [len(x.objects) for x in found] == [2, 0, 1]
    assert found[1].text == ""
    assert found[1].unsure
    assert found[1].best == []
    for content, one in (photos[0], found[0]), (photos[2], found[2]):
        pixels = kc.features.read_photo(content)
        tokens, scores = of_objects.model.generate_tokens([pixels], n=2)
        best = [
            (of_objects.model.vocabulary.decode(row), pytest.approx(float(score)))
            for row, score in zip(tokens[0], scores[0], strict=True)
        ]
        np.testing.assert_array_equal(one.tokens, tokens[0, 0])
        assert one.best == best
        assert (one.text, one.score) == one.best[0]
        assert one.unsure  # below the threshold
        length = np.count_nonzero(one.tokens)
        assert one.confidence == pytest.approx(np.exp(one.score / length))
        assert len(one.words) == length
        assert one.attention.shape == (length, len(one.objects))
        np.testing.assert_allclose(one.attention.sum(axis=1), 1, atol=1e-5)
        assert one.items == [x["category"] for x in one.objects]
        boxes = [x["box"] for x in one.objects]
        np.testing.assert_allclose(one.boxes, boxes, atol=1e-4)


def test_confidence_is_calibrated_by_the_scores_of_what_is_named(
    of_objects, monkeypatch
):
    [model] = of_objects.model.members
    monkeypatch.setattr(model, "calibration", [[0.0, 0.2], [1.0, 0.8]], raising=False)
    [found] = of_objects([{"photo": png((30, 40))}], forbidden=["dog"])
    least = least_score(found.text, found.objects)
    assert found.confidence == pytest.approx(0.2 + 0.6 * least)
    assert found.unsure == (found.confidence < of_objects.model.threshold)


def test_options_are_checked_once_for_all_batches(of_objects, monkeypatch):
    checks = []

    def counting(kind, name, value):
        checks.append(name)
        return checked(kind, name, value)

    checked = decoding.checked
    record = {"regions": np.eye(80)[:3], "boxes": [[0, 0, 1, 1]] * 3}
    monkeypatch.setattr(decoding, "checked", counting)
    of_objects([record] * 33, max_length=3)  # in two batches
    images = {name: np.stack([x] * 2) for name, x in record.items()}
    of_objects.model.generate(images, batch_size=1, max_length=3)
    assert checks == ["max_length"] * 2


def test_options_that_leave_no_text_are_one_sentence(of_objects):
    example = of_objects.read({"photo": png((3, 4))})
    with pytest.raises(kc.InputError, match="There is no text for image 0: `required`"):
        of_objects.answer([example], required=["dog dog"], no_repeat_ngram=1, n=2)
    with pytest.raises(kc.InputError, match="'a dog' is `forbidden`"):
        of_objects.check_options(None, {"required": ["a dog"], "forbidden": ["dog"]})
    effort = of_objects.effort([{}] * 3, 2, {"beam_size": 4, "required": ["a dog"]})
    assert effort == 3 * 4 * 4 * (1 + 2)  # records, beam, tokens, required ones
    forbidden = ["dog a dogs a"] * 2 + [" ".join(["a"] * 100)]
    assert of_objects.effort([{}], 9, {"forbidden": forbidden}) == 9 * 4 * (1 + 2)


def test_several_of_what_is_detected_once_is_unsure(of_objects, monkeypatch):
    monkeypatch.setattr(of_objects.model.members[0], "threshold", 0.0)
    photos = [{"photo": png((3, 4))}, {"photo": png((3, 4), (20, 30))}]
    found = of_objects(photos, prefix="dogs")
    assert [x.unsure for x in found] == [True, False]
    assert [x.doubt for x in found] == ["only one is detected", ""]
    assert [x.unsure for x in of_objects(photos, prefix="a dog")] == [False, False]


@pytest.mark.parametrize("preset", ["ngsan", "aoanet"])
def test_features_are_padded_by_the_rule_of_their_kind(preset, vocabulary, rng):
    sizes = tiny(preset, num_layers=1)
    model = kc.models.create(preset, vocabulary=vocabulary, **sizes)
    predictor = kc.serving.Predictor(model)
    names = ("regions", "boxes") if preset == "ngsan" else ("regions",)
    images = [random_images(rng, 1, n) for n in (4, 1, 6)]
    records = [{name: x[name][0].tolist() for name in names} for x in images]
    options = {"max_length": 4, "beam_size": 1}
    found = predictor(records, **options)
    for inputs, one in zip(images, found, strict=True):
        given = {name: inputs[name] for name in ("regions", "boxes")}
        given["region_mask"] = np.ones(given["regions"].shape[:2], "bool")
        tokens, scores = predictor.model.generate_tokens(given, **options)
        np.testing.assert_array_equal(one.tokens, tokens[0])
        assert one.score == pytest.approx(float(scores[0]), abs=1e-5)


@pytest.mark.parametrize(
    ("preset", "name"), [("aoanet", "regions"), ("video_nsa", "frames")]
)
def test_a_number_is_no_list_of_rows(preset, name, vocabulary):
    sizes = tiny(preset, num_layers=1)
    if name == "frames":
        sizes["frame_dim"] = sizes.pop("region_dim")
    model = kc.models.create(preset, vocabulary=vocabulary, **sizes)
    predictor = kc.serving.Predictor(model)
    for value in -1, 0.5, [1.0], [[[1.0]]]:
        with pytest.raises(kc.InputError, match=f"reads {name} of shape"):
            predictor([{name: value}])


def test_questions_are_answered(detector, rng):
    sizes = tiny("mcan", num_layers=1, pooling_dim=8, fusion_dim=12)
    sizes |= {"answers": ["yes", "no", "two"], "question": QUESTION}
    model = kc.models.create("mcan", **sizes)
    predictor = kc.serving.Predictor(model)
    images = [random_images(rng, 1, n) for n in (2, 5)]
    questions = ["is it red?", ""]
    records = [
        {"regions": x["regions"][0], "boxes": x["boxes"][0], "question": question}
        for x, question in zip(images, questions, strict=True)
    ]
    found = predictor(records, n=3, attention=True)
    for inputs, question, one in zip(images, questions, found, strict=True):
        [best] = model.answer_n_best({"regions": inputs["regions"]}, [question], 3)
        assert [text for text, _ in one.best] == [text for text, _ in best]
        scores = [p for _, p in best]
        np.testing.assert_allclose([p for _, p in one.best], scores, atol=1e-5)
        assert (one.text, one.confidence) == one.best[0]
        assert one.attention.shape == (len(one.words), len(inputs["regions"][0]))
    assert found[0].words == ["is", "it", "red"]
    # The text goes beside the tokens, which lack a word.
    asked = {**records[0], "question": "Is it redder?"}
    assert predictor.read(asked).question == "Is it redder?"
    asked["question"] = QUESTION.to_ids("is it redder")
    assert predictor.read(asked).question == "is it <unk>"
    with pytest.raises(kc.InputError, match="knows 3 answers, not 4"):
        predictor(records, n=4)
    with pytest.raises(kc.InputError, match="no option 'beam_size'"):
        predictor(records, beam_size=2)
    with pytest.raises(kc.InputError, match="Record 0 has no question"):
        predictor([{"regions": images[0]["regions"][0]}])


def test_sentences_are_translated():
    words = kc.text.Vocabulary(["a", "dog", "runs"])
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    model = kc.models.create("transformer_tiny", source=words, target=words, **sizes)
    predictor = kc.serving.Predictor(model)
    sentences = ["a dog runs", "", "dog"]
    found = predictor([{"source": x} for x in sentences], attention=True, max_length=5)
    assert [x.text for x in found] == model.translate(sentences, max_length=5)
    assert found[1].words == []
    assert found[2].items == ["dog", "<eos>"]
    assert found[0].attention.shape == (len(found[0].words), 4)
    with pytest.raises(kc.InputError, match="Sentence 1 has more than 1,024 tokens"):
        predictor([{"source": "a"}, {"source": "a " * 1024}])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"photo": b"no photo"}, "The photo of record 1 is not an image"),
        ({"photo": "/etc/passwd"}, "The photo of record 1 should be the bytes of"),
        ({"photo": np.zeros((2, 2))}, "The photo of record 1 should be the bytes of"),
        ({"photo": png(), "regions": [[0.0]]}, "Record 1 has regions and a photo"),
        ({"photos": [png()]}, "Record 1 has 'photos'; the model 'ngsan"),
        ({"regions": [[0.0] * 80]}, "Record 1 has no boxes"),
        ({"regions": "x", "boxes": []}, "`regions` of record 1 should be an array of"),
        ({"regions": [[1], [1, 2]], "boxes": []}, "`regions` of record 1 should be an"),
        ({"regions": [[0.0] * 80] * 1025, "boxes": []}, "has 1,025 rows; at most"),
        (
            {"regions": [[0.0] * 80], "boxes": [[0, 0, 9, 9]]},
            "Image 1 of the batch has",
        ),
        ({"regions": [[0.0] * 8], "boxes": [[0, 0, 1, 1]]}, "reads regions of shape"),
        ([], "Record 1 should be a dict"),
    ],
)
def test_a_wrong_record_is_one_sentence(of_objects, record, message):
    with pytest.raises(kc.InputError, match=message):
        of_objects([{"photo": png((1, 1))}, record])


@pytest.mark.parametrize("records", [{"photo": b""}, None])
def test_records_are_a_list(of_objects, records):
    with pytest.raises(kc.InputError, match="Records should be a list of dicts"):
        of_objects(records)


def test_a_photo_has_a_limit_of_pixels_before_it_is_decoded(of_objects):
    with pytest.raises(kc.InputError, match="record 0 has 416 x 208 pixels; at most"):
        of_objects.read({"photo": png(size=(208, 416))}, max_pixels=1000)


def test_a_model_that_takes_no_detector_says_so(captioner, detector):
    with pytest.raises(kc.InputError, match="has no extractor: it was not trained"):
        kc.serving.Predictor(captioner, detector)


def test_a_clip_is_bytes_of_a_file():
    class Extractor:
        def read(self, path):
            assert path.read_bytes() == b"RIFF"
            return kc.features.read_clip(path, num_frames=2, size=8)

    with pytest.raises(kc.InputError, match=r"^The clip of record 3 cannot be read: "):
        clip_of(b"RIFF", 3, Extractor())
    with pytest.raises(kc.InputError, match="The clip of record 3 should be the bytes"):
        clip_of("/tmp/clip.mp4", 3, Extractor())
