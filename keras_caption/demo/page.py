"""The page: a tab for each kind of task that the given models can do."""

import functools
import html
import pathlib
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr
from fastapi.middleware import Middleware

from keras_caption.demo import views
from keras_caption.demo.proxies import without_proxies
from keras_caption.demo.uploads import (
    KEPT_SECONDS,
    MAX_BYTES,
    BoundedRequests,
    upload_folder,
    uploaded,
    uploaded_path,
)
from keras_caption.errors import InputError
from keras_caption.features import film_strip, read_photo
from keras_caption.formats.deadline import reading_until
from keras_caption.serving import Limits, Prediction, Predictor
from keras_caption.serving.effort import check_effort
from keras_caption.serving.local_hosts import LocalHosts, is_loopback
from keras_caption.serving.signals import setting_when_asked_to_end

LIMITS = Limits()
WAITING = 100  # questions to the models; more are refused
BEST = 3  # texts that are shown at first
MOST = 10
NOBODY = "none"  # in place of a second model
TABS = {
    "photo": "Caption a photo",
    "question": "Ask about a photo",
    "clip": "Caption a clip",
    "source": "Translate a sentence",
}
# What a model of a tab reads, the most particular first.
NEEDED = {
    "question": {"question", "photo"},
    "source": {"source"},
    "clip": {"clip"},
    "photo": {"photo"},
}
THEME = gr.themes.Default(
    primary_hue="indigo",
    neutral_hue="slate",
    font=("Inter", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif"),
)
STYLE = f"""
.gradio-container {{width: 100%; max-width: 1280px !important;
  margin: 0 auto !important}}
.kc-intro {{margin: 0; color: var(--subdued); overflow-wrap: anywhere}}
.kc-views {{display: grid; gap: 1.5rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 280px), 1fr))}}
{views.STYLE}
"""
TEXTS = "Words or phrases, separated by commas"


def tab_of(name: str, predictor: Predictor) -> str:
    """The tab, a key of `TABS`, that a model answers in.

    Raises:
        InputError: If it reads what no browser sends.
    """
    reads = predictor.reads
    for tab, needed in NEEDED.items():
        if needed <= {*reads}:
            return tab
    raise InputError(
        f"{name} reads {', '.join(reads)}: the page is for models that read photos, "
        "clips or sentences."
    )


def build_page(predictors: Mapping[str, Predictor]) -> gr.Blocks:
    """Builds the page, which `launch` serves.

    Args:
        predictors: dict from a model's name to `keras_caption.serving.Predictor`.

    Raises:
        InputError: If a model has no tab, see `tab_of`.
    """
    tabs = {name: tab_of(name, predictor) for name, predictor in predictors.items()}
    upload_folder()  # before Gradio looks for one
    page = gr.Blocks(
        title="keras_caption",
        fill_width=True,
        analytics_enabled=False,
        delete_cache=(60, KEPT_SECONDS),
    )
    with page:
        gr.HTML(
            "<h1>keras_caption</h1><p class='kc-intro'>What models say, and what each "
            f"word attends to: {html.escape(', '.join(predictors))}.</p>"
        )
        with gr.Tabs():
            for tab, title in TABS.items():
                models = {n: p for n, p in predictors.items() if tabs[n] == tab}
                if models:
                    with gr.Tab(title, id=tab):
                        add_tab(tab, models)
    for block in page.blocks.values():  # any may be sent the address of a file
        block.async_move_resource_to_block_cache = uploaded_path
    return page


def launch(
    page: gr.Blocks, host: str, port: int | None = None, wait: bool = True
) -> str:
    """Serves a page; returns its address.

    Args:
        page: `gradio.Blocks`.
        host: str, address that it is reached at.
        port: int. Defaults to the first free one from 7860 on.
        wait: bool, whether to return only when the process is asked to end.

    Raises:
        InputError: If it cannot be served at this address.
    """
    middleware = [Middleware(BoundedRequests)]
    if host == "localhost" or is_loopback(host):
        middleware.insert(0, Middleware(LocalHosts, host))
    page.queue(max_size=WAITING)
    try:
        with without_proxies():  # Gradio asks its own page whether it is there
            _, address, _ = page.launch(
                server_name=f"[{host}]" if ":" in host else host,
                server_port=port,
                app_kwargs={"middleware": middleware},
                max_file_size=MAX_BYTES,
                prevent_thread_lock=True,
                quiet=True,
                share=False,
                ssr_mode=False,
                footer_links=[],
                run_history=False,
                show_error=True,
                theme=THEME,
                css=STYLE,
            )
    except OSError as error:
        raise InputError(f"The page cannot be served at {host}: {error}") from None
    if wait:
        ended = threading.Event()
        with setting_when_asked_to_end(ended):
            print(f"The page is at {address}; Ctrl+C ends it.", flush=True)
            ended.wait()
        page.close(verbose=False)
    return address


def add_tab(tab: str, models: Mapping[str, Predictor]) -> None:
    """Adds the content of a tab.

    Args:
        tab: str, a key of `TABS`.
        models: dict from name to `Predictor`, those that can answer there.
    """
    names = list(models)
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300):
            asked = [component() for component in INPUTS[tab]]
            with gr.Row():
                first = gr.Dropdown(names, value=names[0], label="Model")
                second = gr.Dropdown(
                    [NOBODY, *names],
                    value=NOBODY,
                    label="Beside it",
                    visible=len(names) > 1,
                )
            count = gr.Slider(1, MOST, BEST, step=1, label="Best texts to show")
            options = []
            if tab != "question":
                with gr.Accordion("Words that have to appear, or must not", open=False):
                    options = [
                        text("Required words", info=TEXTS),
                        text("Forbidden words", info=TEXTS),
                    ]
            button = gr.Button(TABS[tab], variant="primary")
        with gr.Column(scale=3, min_width=300):
            shown = gr.HTML(min_height=40)
    triggers = [button.click, *(x.submit for x in [*asked, *options] if is_text(x))]
    triggers += [x.upload for x in asked if tab in ("photo", "clip") and not is_text(x)]
    gr.on(
        triggers,
        functools.partial(respond, tab, models, len(asked)),
        [*asked, first, second, count, *options],
        shown,
        concurrency_id="models",  # one after the other, whatever the tab
        concurrency_limit=1,
        api_visibility="private",
    )


def photo() -> gr.Image:
    component = gr.Image(
        label="Photo",
        sources=["upload", "clipboard", "webcam"],
        type="filepath",
        height=300,
        buttons=[],
    )
    # Gradio opens the file by itself, and its errors say nothing: `read_photo` has
    # sentences. It also knows more formats, and orientations. Gradio checks paths of
    # some values only.
    component.preprocess = uploaded
    return component


def clip() -> gr.Video:
    component = gr.Video(label="Clip", sources=["upload", "webcam"], height=300)
    component.preprocess = uploaded  # as of photos
    return component


def text(label: str, **more: Any) -> gr.Textbox:
    return gr.Textbox("", label=label, max_lines=4, **more)


def is_text(component: Any) -> bool:
    return isinstance(component, gr.Textbox)


INPUTS = {
    "photo": [photo],
    "question": [photo, lambda: text("Question")],
    "clip": [clip],
    "source": [lambda: text("Sentence")],
}


# === Answers ===


def respond(
    tab: str, models: Mapping[str, Predictor], inputs: int, *values: Any
) -> str:
    """The HTML of one or two models' answers; an error is a sentence.

    Args:
        tab: str, a key of `TABS`.
        models: dict from name to `Predictor`.
        inputs: int, number of the components that were asked.
        *values: Those of the components: what was asked, names of two models, number of
            texts, and required and forbidden words where the tab has them.
    """
    asked, (first, second, count, *texts) = values[:inputs], values[inputs:]
    options = {"n": int(count)}
    for name, text in zip(("required", "forbidden"), texts, strict=False):
        phrases = [x.strip() for x in (text or "").split(",") if x.strip()]
        if phrases:
            options[name] = phrases
    chosen = [first] if second in (NOBODY, None) else [first, second]
    shown = []
    for name in chosen:
        title = name if len(models) > 1 else ""
        try:
            with reading_until(time.monotonic() + LIMITS.timeout):
                shown.append(VIEWS[tab](models[name], *asked, options, title))
        except InputError as error:
            shown.append(views.error_view(str(error), title))
        except Exception as error:  # of what a stranger has sent
            traceback.print_exc(file=sys.stderr)
            problem = f"The page failed: {type(error).__name__}."
            shown.append(views.error_view(problem, title))
    return f'<div class="kc-views">{"".join(shown)}</div>'


def photo_answer(predictor, path, options, title):
    """View of a photo's caption."""
    pixels = photo_at(path)
    prediction = generated(predictor, {"photo": pixels}, options)
    return views.photo_view(prediction, pixels, title)


def question_answer(predictor, path, question, options, title):
    """View of the answer to a question about a photo."""
    pixels = photo_at(path)
    if not (question or "").strip():
        raise InputError("There is no question yet: write one, and press Enter.")
    options = {"n": min(options["n"], len(predictor.model.answers))}
    prediction = attended(predictor, {"photo": pixels, "question": question}, options)
    return views.photo_view(prediction, pixels, title)


def clip_answer(predictor, path, options, title):
    """View of a clip's caption."""
    if not path:
        raise InputError("There is no clip yet: drop one here, or record it.")
    try:
        read = predictor.model.extractor.read(path)
    except InputError as error:
        problem = str(error).replace(str(path), f"The clip {pathlib.Path(path).name}")
        raise InputError(problem) from None
    prediction = generated(predictor, {"clip": read}, options)
    return views.film_view(prediction, film_strip(read), title)


def translation(predictor, sentence, options, title):
    """View of a sentence's translation."""
    if not (sentence or "").strip():
        raise InputError("There is no sentence yet: write one, and press Enter.")
    prediction = generated(predictor, {"source": sentence}, options)
    if not prediction.words:
        raise InputError("The sentence has no words.")
    return views.text_view(prediction, title)


VIEWS: dict[str, Callable] = {
    "photo": photo_answer,
    "question": question_answer,
    "clip": clip_answer,
    "source": translation,
}


def photo_at(path):
    """The pixels of an uploaded file."""
    if not path:
        raise InputError("There is no photo yet: drop one here, paste or take one.")
    return read_photo(pathlib.Path(path).read_bytes(), "The photo")


def generated(
    predictor: Predictor, record: dict[str, Any], options: dict[str, Any]
) -> Prediction:
    """A generated text, by a beam that has as many as are to be shown."""
    beam = max(options["n"], predictor.model.decoding.beam_size)
    return attended(predictor, record, {**options, "beam_size": beam})


def attended(predictor, record, options):
    """What a model makes of a record, with attention where it has some to show."""
    given = {name: x for name, x in options.items() if name != "n"}
    check_effort(predictor, [record], options["n"], given, LIMITS.max_effort)
    [prediction] = predictor([record], attention=True, **options)
    return prediction
