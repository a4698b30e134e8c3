"""The page of a run, as a browser shows it."""

import contextlib
import functools
import pathlib

import photo_runs
import pytest
from photo_runs import finished

from keras_caption.results import Attention, Example
from keras_caption.tasks.run_report import write_report

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
        page.select_option("select", "worst")
        first = page.locator("article").first
        assert float(first.get_attribute("data-score")) == 0
        page.fill("input[name=filter]", "no such word")
        assert page.locator("output").inner_text() == "0 of 50"
        page.locator("input").blur()
        page.keyboard.press("ArrowRight")  # there is no word to go to


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
