"""Caption files of videos, and third-party frame features."""

import numpy as np
import pytest
from video_files import (
    DIM,
    NAMES,
    WRITERS,
    plain,
    random_features,
    write_json,
    write_npy,
)

import keras_caption as kc


@pytest.fixture
def features(rng):
    return random_features(rng)


def names_of(listed):
    return {split: [v.name for v in videos] for split, videos in listed.items()}


def test_msrvtt_gives_splits_and_sentences(tmp_path):
    splits = {"v0": "train", "v1": "validate", "v2": "test", "v3": "test"}
    sentences = [
        {"video_id": name, "sen_id": i, "caption": f"a dog {i}"}
        for i, name in enumerate(["v2", "v0", "v1", "v0"])
    ]
    content = {
        "videos": [
            {"video_id": name, "id": i, "split": split}
            for i, (name, split) in enumerate(splits.items())
        ],
        "sentences": sentences,
    }
    path = write_json(tmp_path / "videodatainfo.json", content)
    listed = kc.prepare.list_videos([path])
    expected = {"train": ["v0"], "val": ["v1"], "test": ["v2", "v3"]}
    assert names_of(listed) == expected
    assert listed["train"][0].captions == ["a dog 1", "a dog 3"]
    assert listed["test"][1].problem == f"{path}: video v3 has no captions."
    write_json(path, {**content, "sentences": [{"video_id": "v9", "caption": "a"}]})
    with pytest.raises(kc.InputError, match=r"sentences\[0\] belongs to video 'v9'"):
        kc.prepare.list_videos([path])


def test_vatex_gives_captions_in_two_languages(tmp_path):
    chinese = ["一个人在T恤店跑步。", "有 人跑步"]
    videos = [{"videoID": "a", "enCap": ["A man, running."], "chCap": chinese}]
    train = write_json(tmp_path / "vatex_training_v1.0.json", videos)
    videos = [{"videoID": "b", "enCap": ["Two men."]}]
    val = write_json(tmp_path / "vatex_validation_v1.0.json", videos)
    test = tmp_path / "vatex_private_test_without_annotations.json"
    write_json(test, [{"videoID": "c"}])
    listed = kc.prepare.list_videos([train, val, test])
    assert names_of(listed) == {"train": ["a"], "val": ["b"], "test": ["c"]}
    assert listed["train"][0].captions == ["A man, running."]
    assert listed["test"][0] == kc.prepare.ListedVideo("c", [])
    [video] = kc.prepare.list_videos([train], "zh")["train"]
    assert video.captions[0] == "一 个 人 在 T 恤 店 跑 步"
    words = kc.text.split_words(video.captions[1])
    assert words == ["有", "人", "跑", "步"]
    with pytest.raises(kc.InputError, match=r"no captions in 'chCap'"):
        kc.prepare.list_videos([val], "zh")
    segmented = [{"videoID": "a", "chCap": ["一个 人 在 跑步", "人 跑步", "跑步"]}]
    write_json(train, segmented)
    [video] = kc.prepare.list_videos([train], "zh")["train"]
    assert video.captions == segmented[0]["chCap"]
    with pytest.raises(kc.InputError, match="`language`: Input should be 'en' or 'zh'"):
        kc.prepare.list_videos([val], "de")
    with pytest.raises(kc.InputError, match="should have train, val or test in its"):
        kc.prepare.list_videos([write_json(tmp_path / "vatex.json", segmented)], "zh")


def test_msvd_gives_the_official_split(tmp_path, capsys):
    path = tmp_path / "AllVideoDescriptions.txt"
    text = "# comment\n\nb_1_2 A dog.\na_1_2 A cat runs.\nb_1_2 One dog.\n"
    path.write_text(text)
    [a, b] = kc.prepare.list_videos([f"val={path}"])["val"]
    assert (a.name, a.captions) == ("a_1_2", ["A cat runs."])
    assert b.captions == ["A dog.", "One dog."]
    with pytest.raises(kc.InputError, match=r"2 videos, not all 1,970, and no split"):
        kc.prepare.list_videos([path])
    names = [f"-{i:04}_0_1" for i in range(1970)]
    path.write_text("".join(f"{name} A dog.\n" for name in names))
    splits = names_of(kc.prepare.list_videos([path]))
    assert [len(x) for x in splits.values()] == [1200, 100, 670]
    assert (splits["val"][0], splits["test"][-1]) == (names[1200], names[-1])
    path.write_text("cut\n")
    with pytest.raises(kc.InputError, match="line 1 should be the name of a clip"):
        kc.prepare.list_videos([path])
    corpus = tmp_path / "corpus_test.csv"
    header = "VideoID,Start,End,WorkerID,Source,AnnotationTime,Language,Description\n"
    rows = ["a,1,2,7,clean,9,English,A dog.", "a,1,2,7,clean,9,German,Ein Hund."]
    corpus.write_text(header + "\n".join(rows))
    [video] = kc.prepare.list_videos([corpus])["test"]
    assert (video.name, video.captions) == ("a_1_2", ["A dog."])
    corpus.write_text("a,b\n")
    with pytest.raises(
        kc.InputError, match="should have MSVD's columns VideoID, Start"
    ):
        kc.prepare.list_videos([corpus])


def test_a_video_is_listed_once(tmp_path):
    a, b = (write_json(tmp_path / f"{name}.json", plain()) for name in "ab")
    with pytest.raises(
        kc.InputError, match=r"b\.json: video v0 is listed in .*a\.json"
    ):
        kc.prepare.list_videos([a, b])
    write_json(a, plain(["v0", "v0"], ["train", "test"]))
    with pytest.raises(kc.InputError, match=r"\[1\]\.id is 'v0', as in .*\[0\]"):
        kc.prepare.list_videos([a])
    for content in ({}, [], 3, {"images": []}):
        with pytest.raises(kc.InputError, match=r"a\.json should list videos"):
            kc.prepare.list_videos([write_json(a, content)])
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"id": "v0"}\n{"id": "v1"}\n')
    with pytest.raises(kc.InputError, match=r"a\.jsonl should list videos: VATEX"):
        kc.prepare.list_videos([lines])


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_of_features_is_read(features, tmp_path, name):
    source = kc.prepare.open_frames(WRITERS[name](tmp_path / name, features))
    assert sorted(source.ids) == NAMES
    for video, expected in features.items():
        np.testing.assert_array_equal(source.read(video), expected)


FAULTS = {
    "nan": (np.full((2, DIM), np.nan), "has features that are not finite"),
    "none": (np.zeros((0, DIM)), r"is empty: its shape is \(.*0, 6\)"),
    "axes": (np.zeros((2, 3, DIM)), r"shape .*; it should be \(T, D\)"),
    "text": (np.array([["a"]]), "it should be real numbers"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_features_are_named(features, tmp_path, fault):
    array, problem = FAULTS[fault]
    writers = {**WRITERS}
    if fault == "text":
        del writers["features.h5"]  # which holds no such array
    for name, write in writers.items():
        path = write(tmp_path / name, {**features, "v1": array})
        with pytest.raises(kc.InputError, match=problem) as error:
            kc.prepare.open_frames(path).read("v1")
        assert f"{path}" in str(error.value)
        assert "v1" in str(error.value)


def test_objects_and_other_files_are_refused(features, tmp_path):
    folder = write_npy(tmp_path / "npy", features)
    np.save(folder / "v1.npy", np.array([[{}]], object))
    (folder / "v2.npy").write_bytes((folder / "v2.npy").read_bytes()[:-9])
    np.savez(folder / "w.npz", a=np.ones((2, 3)), b=np.ones((2, 3)))
    np.savez(folder / "v0.npz", np.ones((2, 3)))
    source = kc.prepare.open_frames(folder)
    np.testing.assert_array_equal(source.read("v0"), features["v0"])
    (folder / "v0.npy").write_bytes(b"")  # a second record that can be read counts
    np.testing.assert_array_equal(source.read("v0"), np.ones((2, 3)))
    for name, problem in {
        "v1": r"v1\.npy is an array of Python objects",
        "v2": r"v2\.npy has \d+ bytes, but",
        "w": "should have one array, or one called 'feat'",
    }.items():
        with pytest.raises(kc.InputError, match=problem):
            source.read(name)
    with pytest.raises(kc.InputError, match="There is no file or folder"):
        kc.prepare.open_frames(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(kc.InputError, match=r"There is no \.npy or \.npz file"):
        kc.prepare.open_frames(tmp_path / "empty")
    (tmp_path / "a.tsv").touch()
    with pytest.raises(kc.InputError, match=r"a\.tsv should be an \.h5, or a folder"):
        kc.prepare.open_frames(tmp_path / "a.tsv")
