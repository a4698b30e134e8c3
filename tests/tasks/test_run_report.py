"""Pages of runs and sheets of captions, as a browser shows them."""

import contextlib
import functools
import pathlib

import numpy as np
import photo_runs
import pytest
from keras_caption.results import Attention, Example, Line
from photo_runs import finished

import keras_caption as kc
from keras_caption.apps.report.run_report import write_report
from keras_caption.base.atomic import write_json

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if not pathlib.Path(CHROMIUM).exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, path, **options):
    """The page in a browser, which must not complain nor ask for anything."""
    page = browser.new_page(viewport={"width": 390, "height": 800}, **options)
    heard = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: heard.append(request.url[:5]))
    page.goto(path.as_uri())
    yield page
    assert {*heard} <= {"file:", "data:"}
    assert heard.count("file:") == 1  # the page itself


def test_a_report_of_two_runs_is_read_by_keys(browser, tmp_path):
    runs = [finished(tmp_path / "a", 50), finished(tmp_path / "b", 50, 1, 0.2)]
    path = tmp_path / "report.html"
    write_report(runs, path)
    assert 10 * path.stat().st_size < 20e6  # of 500 examples
    with opened(browser, path, color_scheme="dark") as page:
        body = page.inner_text("body")
        assert "50 of 50 of the test split" in body
        # The published row of the model, beside ours.
        assert "123.4" in body
        assert "NG-SAN, Table 2: SAN + SCST" in body
        heads = page.locator("#list h3").all_inner_texts()
        assert heads[0] == "Where the two differ most"
        assert heads[1:4] == [f"{x} by CIDEr-D" for x in ("Best", "Median", "Worst")]
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        frames = page.locator(".image i")
        assert not frames.count()
        page.keyboard.press("ArrowRight")
        assert page.locator(":focus").inner_text() == "a"
        assert page.locator(".image b").all_inner_texts() == [
            "dog 50 %",
            "<b> 30 %",
            "ball 20 %",
        ]
        page.keyboard.press("ArrowRight")
        assert page.locator(":focus").inner_text() == "</script>"
        assert page.locator(".image b").all_inner_texts() == ["<b> 97 %"]
        style = page.locator(".image i").get_attribute("style")
        assert "left: 50%; top: 0%; width: 50%; height: 50%" in style
        page.keyboard.press("ArrowDown")  # the same word of the other run's line
        line = page.locator(":focus").locator("xpath=..")
        assert line.get_attribute("data-line") == "1"
        page.keyboard.press("Escape")
        assert not frames.count()
        assert page.locator("article:visible").count() == 26  # the extremes
        page.select_option("select", "worst")
        first = page.locator("article").first
        assert float(first.get_attribute("data-score")) == 0
        assert page.locator("article:visible").count() == 50
        page.select_option("select", "given")
        assert page.locator("article:visible").count() == 26
        page.fill("input[name=filter]", "ball")
        assert page.locator("article:visible").count() == 50
        page.fill("input[name=filter]", "no such word")
        assert page.locator("output").inner_text() == "0 of 50"
        page.locator("input").blur()
        page.keyboard.press("ArrowRight")  # there is no word to go to


def test_scores_on_generated_data_stand_alone_and_only_of_what_is_counted(tmp_path):
    run = finished(tmp_path, 30)
    run.description["config"]["data"]["dataset"] = "scenes"
    run.scores["statements"] = {"colours": 0.8, "counts": 0.0}
    counts = {"statements": {"colours": 9, "counts": 0}}
    outcome = run.task.outcome(None, None)
    outcome.counts = counts
    run.task.outcome = lambda *_: outcome
    epoch = {"epoch": 1, "iterations": 1, "scale": 100, "val_cider": 3.0}
    write_json(tmp_path / "history.json", [epoch])
    (tmp_path / "attention.png").write_bytes(b"image")
    path = tmp_path / "report.html"
    write_report([run], path)
    text = path.read_text()
    assert "NG-SAN" not in text  # the published row of the model is of COCO
    assert ">colours<" in text
    assert ">counts<" not in text
    assert "1 epoch," in text
    assert 0 < text.index("data:image/png;base64,aW1hZ2U=") < text.index("Scores</h2>")
    assert "<details><summary>Others, as in the split: 12</summary>" in text


def test_words_of_a_source_have_the_share_of_a_word(browser, tmp_path, monkeypatch):
    example = functools.partial(Example, source="dog <b> ball")
    monkeypatch.setattr(photo_runs, "Example", example)
    monkeypatch.setattr(
        photo_runs, "Attention", lambda _, *found: Attention(None, *found)
    )
    path = tmp_path / "report.html"
    write_report([finished(tmp_path, 12)], path)
    with opened(browser, path) as page:
        shares = page.locator(".source").first.locator("[data-share]")

        def shown():
            pairs = "all => all.map(x => [x.innerText, x.dataset.share])"
            return shares.evaluate_all(pairs)

        page.keyboard.press("ArrowRight")
        assert shown() == [["dog", "50"], ["<b>", "30"], ["ball", "20"]]
        page.keyboard.press("ArrowRight")
        assert shown() == [["<b>", "97"]]
        page.keyboard.press("Escape")
        assert page.locator(".source").first.inner_text() == "dog <b> ball"
        assert not shown()


def test_a_report_is_read_without_javascript(browser, tmp_path):
    path = tmp_path / "report.html"
    write_report([finished(tmp_path, 20)], path)
    with opened(browser, path, java_script_enabled=False) as page:
        text = page.locator("#list").text_content()
        assert text.count("One ball & no more.") == 20
        assert text.count("a </script> ball") == 20
        assert not page.locator("form").is_visible()


# What ends an attribute, a script, a style or a comment, and runs another script.
HOSTILE = [
    "<script>window.ran=1</script>",
    "</script><script>window.ran=1</script>",
    "</style><img src=x onerror=window.ran=1>",
    "\"'><svg onload=window.ran=1>",
    "' onmouseover='window.ran=1' autofocus onfocus='window.ran=1",
    "--><iframe src=javascript:window.ran=1>",
    "]]><script>window.ran=1</script>{{7*7}}{% raw %}",
    "\u2028window.ran=1//\u2029&lt;b&gt;&amp;\u202e",
]


def check_that_nothing_ran(page):
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    assert not page.locator("iframe, svg[onload], [onerror], [onfocus]").count()


def test_hostile_texts_of_a_run_are_shown_as_text(browser, tmp_path, monkeypatch):
    names = [*HOSTILE, *HOSTILE]

    class Hostile(photo_runs.Photos):
        def __init__(self, count, offset=0.0):
            super().__init__(count, offset)
            self.scores = {
                f"{i}{names[i % 8]}": score for i, score in self.scores.items()
            }

        def outcome(self, model, folder):
            outcome = super().outcome(model, folder)
            outcome.outputs = names[: len(outcome.outputs)]
            outcome.references = [HOSTILE] * len(outcome.outputs)
            outcome.score = HOSTILE[0]
            return outcome

        def examples(self, model, folder, scores, keys):
            weights = np.eye(8, dtype="float32")
            areas = np.tile(np.float32([0, 0, 0.5, 0.5]), (8, 1))
            return {
                key: Example(
                    [
                        Line(
                            HOSTILE,
                            answer=HOSTILE[1],
                            truth=HOSTILE[2],
                            kind=HOSTILE[3],
                            score=scores[key],
                            attention=Attention(areas, weights, HOSTILE),
                        )
                    ],
                    HOSTILE,
                    source=HOSTILE[4],
                    image=np.full((40, 60, 3), 200, "uint8"),
                )
                for key in keys
            }

    monkeypatch.setattr(photo_runs, "Photos", Hostile)
    runs = []
    for i, name in enumerate(("</title><script>window.ran=1<", "<img src=x onerror=")):
        folder = tmp_path / f"{name}{i}"
        folder.mkdir(parents=True)
        run = finished(folder, 12, i)
        run.description["config"] |= {"seed": i, "data": {"dataset": HOSTILE[0]}}
        run.description["config"]["model"] = dict.fromkeys(HOSTILE, HOSTILE[-i])
        run.scores[HOSTILE[0]] = dict.fromkeys(HOSTILE, 0.5)
        runs.append(run)
    path = tmp_path / "report.html"
    write_report(runs, path)
    with opened(browser, path) as page:
        text = page.locator("body").text_content()
        for hostile in HOSTILE:
            assert hostile in text
        for key in ("ArrowRight", "ArrowDown", "Escape"):
            page.keyboard.press(key)
        page.fill("input[name=filter]", HOSTILE[0])
        check_that_nothing_ran(page)


def test_hostile_texts_of_a_sheet_are_shown_as_text(browser, tmp_path):
    path, pixels = tmp_path / "sheet.html", np.full((40, 60, 3), 200, "uint8")
    file = kc.results.open_caption_file(str(path), 2)
    photos = [f"{tmp_path}/{i}{name}.png" for i, name in enumerate(HOSTILE)]
    photos.append("bytes \udcff\n that are no text.png")
    for i, photo in enumerate(photos):
        text = HOSTILE[i % len(HOSTILE)]
        objects = [{"category": x, "score": 0.9, "box": [0, 0, 1, 1]} for x in HOSTILE]
        row = {"photo": photo, "caption": text, "score": -1.0, "confidence": 0.5}
        row |= {"unsure": True, "doubt": text, "objects": objects}
        file.write({**row, "n_best": [{"caption": text, "score": -1.0}] * 2}, pixels)
    file.close()
    with opened(browser, path) as page:
        assert page.locator("figure").count() == len(photos)
        text = page.locator("body").text_content()
        for hostile in HOSTILE:
            assert hostile in text
        page.select_option("select", "name")
        page.fill("input[name=filter]", "window")
        check_that_nothing_ran(page)
    # It is continued: what is in it is still known.
    again = kc.results.open_caption_file(str(path), 2)
    assert all(photo in again for photo in photos)
