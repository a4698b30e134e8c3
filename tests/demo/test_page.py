"""The page in a browser: every tab, by mouse and by keyboard, wide, narrow and dark."""

import itertools
import json
import pathlib
import urllib.parse

import httpx
import keras
import pytest
from clip_files import write_clip
from conftest import tiny
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc

pytest.importorskip("gradio")
uploads = pytest.importorskip("keras_caption.apps.serve.demo.uploads")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = pathlib.Path("/usr/bin/chromium")
SHORT = kc.decoding.Decoding(min_length=2, max_length=4)
SIZES = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "feedforward_dim": 8}
WORDS = ["a", "dog", "runs", "here"]


@pytest.fixture(scope="module")
def address():
    """The page of tiny models for all tabs, of which two caption photos."""
    from keras_caption.demo import build_page, launch

    keras.utils.set_random_seed(0)
    words = kc.text.Vocabulary(WORDS)
    tokenizer = kc.text.WordTokenizer(WORDS)
    categories = list(kc.objects.CATEGORIES)
    objects = {"region_dim": 80, "num_layers": 1}
    clips = kc.features.ClipExtractor(
        kc.features.Extractor("MobileNet", image_size=32, arguments={"alpha": 0.25}),
        num_frames=4,
    )
    detector = kc.objects.Yolox(white_yolox(), image_size=64)
    models = {
        "one": kc.models.create(
            "ngsan",
            vocabulary=words,
            categories=categories,
            extractor=detector,
            **tiny("ngsan", **objects),
        )
    }
    models["two"] = models["one"]
    models["asked"] = kc.models.create(
        "mcan_gsa",
        answers=["yes", "no", "two"],
        question=kc.text.QuestionTokenizer(WORDS),
        extractor=detector,
        **tiny("mcan_gsa", pooling_dim=8, fusion_dim=12, **objects),
    )
    models["clips"] = kc.models.create(
        "video_nsa",
        vocabulary=words,
        extractor=clips,
        frame_dim=clips.frame_dim,
        **SIZES,
    )
    models["translator"] = kc.models.TransformerTranslator(
        tokenizer, tokenizer, **SIZES
    )
    for model in models.values():
        if isinstance(model, kc.models.Seq2Seq):
            model.decoding = SHORT
    predictors = {n: kc.serving.Predictor(model) for n, model in models.items()}
    page = build_page(predictors)
    yield launch(page, "127.0.0.1", wait=False)
    page.close()


@pytest.fixture
def browser():
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


def test_every_tab_answers(address, browser, tmp_path):
    Image.fromarray(photo(64, 48, [(1, 1), (5, 3)])).save(tmp_path / "dogs.png")
    (tmp_path / "broken.jpg").write_bytes(b"no photo")
    write_clip(tmp_path / "clip.webm", 6)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(120_000)  # of a busy machine
    hosts = set()
    page.on("request", lambda r: hosts.add(urllib.parse.urlparse(r.url).hostname))
    page.goto(address)
    panel = page.get_by_role("tabpanel").locator("visible=true")
    result = panel.locator(".kc")

    # === A photo, by two models ===
    panel.locator("input[type=file]").set_input_files(tmp_path / "dogs.png")
    result.locator(".said").wait_for()
    assert result.locator(".box").all_inner_texts() == ["dog 97%", "dog 97%"]
    opacities = "boxes => boxes.map(box => getComputedStyle(box).opacity)"
    before = result.locator(".box").evaluate_all(opacities)
    limits = panel.locator(".kc-limits").inner_text()
    sees = "By itself, it sees objects of 80 categories, and nothing else of an image."
    assert f"one: {sees}" in limits
    assert "second opinion" not in limits
    first = result.locator("fieldset label").first
    assert first.inner_text() in WORDS
    first.hover()
    assert result.locator(".shares span").first.is_visible()
    assert "dog" in result.locator(".shares span").first.inner_text()
    page.mouse.move(0, 0)
    assert before == ["1", "1"]
    result.locator("fieldset input").last.focus()  # what is chosen: all words
    page.keyboard.press("ArrowRight")
    assert result.locator("fieldset input").first.is_checked()
    assert result.locator(".shares span").first.is_visible()
    panel.get_by_label("Beside it").click()
    page.get_by_role("option", name="two").click()
    panel.get_by_role("button", name="Words that have to appear").click()
    panel.get_by_role("button", name="Caption a photo").click()
    page.wait_for_function("document.querySelectorAll('.kc h3').length == 2")
    assert result.locator("h3").all_inner_texts() == ["one", "two"]
    assert len({*result.locator(".said").all_inner_texts()}) == 1
    page.screenshot(path=tmp_path / "photo.png", full_page=True)
    box = panel.get_by_label("Required words")
    box.fill("dog, zebra")
    box.press("Enter")
    problem = "`required`: 'zebra' has words that the model does not know."
    panel.get_by_text(problem).first.wait_for()
    assert panel.get_by_role("alert").count() == 2
    box.fill("")
    box = panel.get_by_label("Forbidden words")
    box.fill("dog, zebra")
    box.press("Enter")
    result.locator(".said").first.wait_for()
    assert not any("dog" in x for x in result.locator(".said").all_inner_texts())
    box.fill("")

    # === An example photo ===
    panel.get_by_role("button", name="Cup").click()
    result.locator(".none").first.wait_for()  # there is no white cell
    assert panel.locator(".kc-limits").inner_text().startswith("Files: BMP, GIF, JPEG")

    # === A question about a photo ===
    page.get_by_role("tab", name="Ask about a photo").click()
    panel.locator("input[type=file]").set_input_files(tmp_path / "broken.jpg")
    panel.get_by_label("Question").fill("a dog?")
    panel.get_by_label("Question").press("Enter")
    panel.get_by_role("alert").wait_for()
    assert panel.get_by_role("alert").inner_text().startswith("The photo is not an")
    panel.get_by_label("Remove").or_(panel.get_by_label("Clear")).first.click()
    panel.locator("input[type=file]").set_input_files(tmp_path / "dogs.png")
    panel.locator("img").first.wait_for()
    panel.get_by_role("button", name="Ask about a photo").click()
    result.locator(".said").wait_for()
    assert result.locator(".said").inner_text() in ("yes", "no", "two")
    assert result.locator("tbody tr").count() == 3
    assert result.locator("fieldset label").all_inner_texts()[:2] == ["a", "dog"]

    # === A clip ===
    page.get_by_role("tab", name="Caption a clip").click()
    panel.locator("input[type=file]").set_input_files(tmp_path / "clip.webm")
    result.locator(".said").wait_for()
    assert result.locator(".box").count() == 4
    result.locator("fieldset label").first.hover()
    shown = result.locator(".box").evaluate_all(opacities)
    assert max(map(float, shown)) == 1

    # === A sentence, on a phone in the dark ===
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    page.goto(address)
    page.get_by_label("More tabs").click()
    page.get_by_role("button", name="Translate a sentence").click()
    panel.get_by_label("Sentence").fill("a dog runs")
    panel.get_by_label("Sentence").press("Enter")
    result.locator(".said").wait_for()
    page.wait_for_function(
        "document.querySelector('.kc .said').getBoundingClientRect().top"
        " < innerHeight / 2"
    )
    tokens = result.locator(".token").all_inner_texts()
    assert tokens[:3] == ["a", "dog", "runs"]
    assert page.evaluate("document.body.classList.contains('dark')")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.screenshot(path=tmp_path / "phone.png", full_page=True)
    assert hosts == {"127.0.0.1", None}


# === What a stranger sends, without the page's own code ===


def ask(address, label, *values):
    """The answer to a raw question: HTML, or an error.

    Args:
        address: str, of the page.
        label: str, of a tab's first component.
        *values: Of all its components.
    """
    config = httpx.get(f"{address}config").json()
    labels = {x["id"]: x["props"].get("label") for x in config["components"]}
    functions = (x for x in config["dependencies"] if len(x["inputs"]) == len(values))
    function = next(x for x in functions if labels[x["inputs"][0]] == label)
    body = {"data": values, "fn_index": function["id"], "session_hash": "s"}
    queued = httpx.post(f"{address}gradio_api/queue/join", json=body)
    assert queued.status_code == 200, queued.text
    stream = f"{address}gradio_api/queue/data?session_hash=s"
    with httpx.stream("GET", stream, timeout=120) as events:
        for line in events.iter_lines():
            event = json.loads(line.removeprefix("data:")) if line else {}
            if event.get("msg") == "process_completed":
                output = event["output"]
                return output.get("error") or output["data"][0]
    raise AssertionError("The stream ends without an answer.")


def upload(address, name, content):
    answer = httpx.post(f"{address}gradio_api/upload", files={"files": (name, content)})
    return answer.json()[0]


def test_only_what_was_uploaded_is_read(address, tmp_path):
    mine = tmp_path / "private.png"
    Image.fromarray(photo(64, 48, [(1, 1)])).save(mine)
    sent = upload(address, "dogs.png", mine.read_bytes())
    link = pathlib.Path(sent).with_name("link.png")
    link.symlink_to(mine)
    rest = ["one", "none", 3, "", ""]
    assert 'class="said"' in ask(address, "Photo", {"path": sent}, *rest)
    meta = {"_type": "gradio.FileData"}
    for path in (mine, tmp_path / "none.png", link, f"{sent}/../../../{mine}", "/"):
        value = {"path": str(path)}
        assert ask(address, "Photo", value, *rest) == uploads.NOT_SENT
        marked = ask(address, "Photo", {**value, "meta": meta}, *rest)
        assert marked.endswith(" because it was not uploaded by a user.")
    clip = ask(address, "Clip", {"path": str(mine)}, "clips", "none", 3, "", "")
    assert "meta" in clip or clip == uploads.NOT_SENT
    assert httpx.get(f"{address}gradio_api/file={sent}").status_code == 200
    assert httpx.get(f"{address}gradio_api/file={mine}").status_code == 403


def test_uploads_have_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv(uploads.FOLDER, str(tmp_path / "shared"))
    folder = uploads.upload_folder.__wrapped__()
    assert folder.parent == tmp_path / "shared"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_no_address_is_fetched_and_nothing_else_is_run(address, monkeypatch):
    asked = []

    async def fetch(url, *args, **more):
        asked.append(url)
        raise ValueError(url)

    monkeypatch.setattr("gradio.processing_utils.async_ssrf_protected_get", fetch)
    monkeypatch.setattr("gradio.routes.secure_url_stream_response", fetch)
    url = "https://photos.example/dog.png"
    file = {"path": url, "url": url, "meta": {"_type": "gradio.FileData"}}
    rest = ["none", 3, "", ""]
    assert ask(address, "Photo", file, "one", *rest) == uploads.NOT_SENT
    assert ask(address, "Sentence", file, "translator", *rest) == uploads.NOT_SENT
    api = f"{address}gradio_api/"
    for path in (f"file={url}", f"proxy={url}", "dev/reload", "deep_link", "vibe-code"):
        assert httpx.get(api + path).status_code == 404
    for path in ("process_recording", "component_server", "vibe-edit", "run/predict"):
        assert httpx.post(api + path, json={}).status_code == 404
    assert not asked
    long = {"data": ["a" * 2**20], "fn_index": 0, "session_hash": "s"}
    assert httpx.post(f"{api}queue/join", json=long).status_code == 413


def test_pages_of_others_and_long_uploads_are_refused(address, monkeypatch):
    for headers in {"host": "evil.example"}, {"origin": "https://evil.example"}:
        answer = httpx.get(f"{address}config", headers=headers)
        assert answer.status_code == 403
        assert "evil.example" in answer.json()["error"]
    path = f"{address}gradio_api/upload"
    chunks = httpx.post(path, content=iter([b"x"]))
    assert (chunks.status_code, "a Content-Length" in chunks.text) == (411, True)
    monkeypatch.setattr(uploads, "MAX_BYTES", 1000)
    long = httpx.post(path, files={"files": ("a.png", b"x" * 1001)})
    assert (long.status_code, "at most 1,000 bytes" in long.text) == (413, True)
    monkeypatch.setattr(uploads, "MAX_KEPT", 0)
    more = httpx.post(path, files={"files": ("a.png", b"x")})
    assert (more.status_code, "no space for more" in more.text) == (507, True)


def test_the_effort_of_a_question_is_bounded(address):
    words = ", ".join(map(" ".join, itertools.product(WORDS, repeat=5)))
    answer = ask(address, "Sentence", "a dog", "translator", "none", 10, words, "")
    assert "The request asks for too much: " in answer


def test_the_command_shows_saved_models(tmp_path, monkeypatch):
    from keras_caption.commands import demo

    shown = []
    monkeypatch.setattr("keras_caption.demo.launch", lambda *call: shown.append(call))
    words = kc.text.Vocabulary(WORDS)
    categories = list(kc.objects.CATEGORIES)
    sizes = tiny("ngsan", region_dim=80, num_layers=1)
    path = tmp_path / "tiny.keras"
    kc.models.create("ngsan", vocabulary=words, categories=categories, **sizes).save(
        path
    )
    white_yolox(image_size=None).save(tmp_path / "yolox.keras")
    command = [str(path), "--port", "7999", f"--detector={tmp_path / 'yolox.keras'}"]
    adds = "adds finer names, things and places to its captions"
    for more, opinion in (
        (["--second_opinion"], True),
        (["--second_opinion", "--no-details"], False),
        (["--no-second_opinion"], False),
    ):
        demo.main([*command, *more])
        page, *address = shown.pop()
        assert address == ["127.0.0.1", 7999]
        assert "tiny" in str(page.config)
        assert (adds in str(page.config)) == opinion
