"""The page: a tab for each task of the models."""

import functools
import html
import pathlib
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from keras_caption.apps.objects import SecondOpinion
from keras_caption.apps.serve import Limits, Prediction, Predictor
from keras_caption.apps.serve.demo import views
from keras_caption.apps.serve.demo.proxies import without_proxies
from keras_caption.apps.serve.demo.uploads import (
    KEPT_SECONDS,
    MAX_BYTES,
    BoundedRequests,
    upload_folder,
    uploaded,
    uploaded_path,
)
from keras_caption.apps.serve.effort import check_effort
from keras_caption.apps.serve.local_hosts import LocalHosts, is_loopback
from keras_caption.apps.serve.signals import setting_when_asked_to_end
from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError
from keras_caption.features import MAX_PIXELS, film_strip, read_photo
from keras_caption.features.photos import readable_formats
from keras_caption.formats.deadline import reading_until
from keras_caption.models.answering import Answering
from keras_caption.models.cards import limits_of

LIMITS = Limits()
WAITING = 100  # greatest number of waiting requests; further ones are refused
BEST = 3  # default number of texts
MOST = 10  # greatest number of texts
NOBODY = "none"  # the choice of no second model
TABS = {
    "photo": "Caption a photo",
    "question": "Ask about a photo",
    "clip": "Caption a clip",
    "source": "Translate a sentence",
}
# Inputs of a model in a tab. The first match counts: a model of questions reads photos
# too.
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
# Scrolls to an answer that is below the inputs, as on a phone.
INTO_VIEW = """() => {
  const shown = document.getElementById("%s")
  if (shown.getBoundingClientRect().top > innerHeight / 2) shown.scrollIntoView()
}"""
TEXTS = "Words or phrases, separated by commas"
HIDDEN: dict[str, Any] = {"api_visibility": "private"}
PHOTOS = pathlib.Path(__file__).parent / "photos"
# The photo of an example, and the question about it.
EXAMPLES = {
    "photo": [["cat"], ["cup"], ["astronaut"]],
    "question": [
        ["cat", "What animal is it?"],
        ["cup", "Is there a dog?"],
        ["astronaut", "How many people are there?"],
    ],
}
OPINION = (
    "A second opinion on the photo adds finer names, things and places to its captions."
)
KEPT = (
    f"{MAX_BYTES // 2**20} MB; uploads are removed after {KEPT_SECONDS // 60} minutes."
)
PHOTO_FILES = (
    f"{', '.join(readable_formats())}, at most {MAX_PIXELS // 10**6} million pixels "
    f"and {KEPT}"
)
FILES_OF_TAB = {
    "photo": PHOTO_FILES,
    "question": PHOTO_FILES,
    "clip": f"Clips that FFmpeg reads, at most {KEPT}",
}


def tab_of(name: str, predictor: Predictor) -> str:
    """The tab of a model, a key of `TABS`.

    Raises:
        InputError: If the model reads features, which a browser does not send.
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
    """Builds the page; `launch` serves it.

    Args:
        predictors: dict from the name of a model to `keras_caption.serving.Predictor`.

    Raises:
        InputError: If a model has no tab, see `tab_of`.
    """
    tabs = {name: tab_of(name, predictor) for name, predictor in predictors.items()}
    upload_folder()  # sets the folder before Gradio reads the variable
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
    # A request may send an address to any component, which Gradio would download.
    block: Any  # of which a method is replaced
    for block in page.blocks.values():
        block.async_move_resource_to_block_cache = uploaded_path
    return page


def launch(
    page: gr.Blocks, host: str, port: int | None = None, wait: bool = True
) -> str:
    """Serves a page; returns its address.

    Args:
        page: `gradio.Blocks`.
        host: str, address to listen on.
        port: int. Defaults to the first free port from 7860 on.
        wait: bool, whether to return only after SIGINT, SIGTERM or SIGHUP.

    Raises:
        InputError: If the page cannot be served at this address.
    """
    middleware = [Middleware(BoundedRequests)]
    if host == "localhost" or is_loopback(host):
        middleware.insert(0, Middleware(LocalHosts, host))
    page.queue(max_size=WAITING)
    try:
        with without_proxies():  # Gradio requests its own page, to see that it works
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
        models: dict from name to `Predictor`, the models of the tab.
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
            examples = example_buttons(tab)
        with gr.Column(scale=3, min_width=300):
            shown = gr.HTML(min_height=40, elem_id=f"kc-shown-{tab}")
            known = {"Files": [FILES_OF_TAB[tab]]} if tab in FILES_OF_TAB else {}
            known |= {n: limits(p) for n, p in models.items()}
            gr.HTML(views.limits_view(known))
    triggers = [button.click, *(x.submit for x in [*asked, *options] if is_text(x))]
    triggers += [x.upload for x in asked if tab in ("photo", "clip") and not is_text(x)]
    answers = {
        "fn": functools.partial(respond, tab, models, len(asked)),
        "inputs": [*asked, first, second, count, *options],
        "outputs": shown,
        "concurrency_id": "models",  # one request at a time in all tabs
        "concurrency_limit": 1,
        "api_visibility": "private",
    }
    answered = [gr.on(triggers, **answers)]
    for example, values in examples:
        chosen = example.click(
            functools.partial(example_values, values), None, asked, **HIDDEN
        )
        answered.append(chosen.then(**answers))
    for event in answered:
        event.then(js=INTO_VIEW % f"kc-shown-{tab}", **HIDDEN)


def example_buttons(tab: str) -> list[tuple[gr.Button, list[str]]]:
    """Adds a button for each example of a tab; returns them with their values."""
    if tab not in EXAMPLES:
        return []
    gr.HTML("<p class='kc-intro'>Or try an example:</p>")
    with gr.Row():
        return [
            (gr.Button(values[-1].capitalize(), size="sm", min_width=80), values)
            for values in EXAMPLES[tab]
        ]


def example_values(values: list[str]) -> list[str] | str:
    """The values of a tab's components: a photo as if it were uploaded, and a text."""
    name, *texts = values
    source = PHOTOS / f"{name}.jpg"
    path = upload_folder() / "examples" / source.name
    with replacing(path) as partial:  # after an hour, it is removed as an upload
        shutil.copyfile(source, partial)
    return [str(path), *texts] if texts else str(path)


def limits(predictor: Predictor) -> list[str]:
    """Limits of a predictor, and what else its captions have: a list of sentences."""
    model = predictor.model
    members = getattr(model, "members", [model])
    sentences = [x for member in members for x in limits_of(member)]
    has_opinion = isinstance(model.extractor, SecondOpinion)
    if has_opinion and predictor.details and not isinstance(model, Answering):
        sentences.append(OPINION)
    return list(dict.fromkeys(sentences))


def photo() -> gr.Image:
    component: Any = gr.Image(  # of which a method is replaced
        label="Photo",
        sources=["upload", "clipboard", "webcam"],
        type="filepath",
        height=300,
        buttons=[],
    )
    # By default Gradio opens the file. `read_photo` has better messages, more formats
    # and orientations. The path is checked here, since Gradio checks paths of some
    # values only.
    component.preprocess = uploaded
    return component


def clip() -> gr.Video:
    component: Any = gr.Video(label="Clip", sources=["upload", "webcam"], height=300)
    component.preprocess = uploaded  # as for photos
    return component


def text(label: str, **more: Any) -> gr.Textbox:
    return gr.Textbox("", label=label, max_lines=4, **more)


def is_text(component: Any) -> bool:
    return isinstance(component, gr.Textbox)


INPUTS: dict[str, list[Callable[[], Any]]] = {  # Gradio makes events at run time
    "photo": [photo],
    "question": [photo, lambda: text("Question")],
    "clip": [clip],
    "source": [lambda: text("Sentence")],
}


# === Answers ===


def respond(
    tab: str, models: Mapping[str, Predictor], inputs: int, *values: Any
) -> str:
    """The HTML of the answers of one or two models. An error is shown as a sentence.

    Args:
        tab: str, a key of `TABS`.
        models: dict from name to `Predictor`.
        inputs: int, number of components with inputs of the models.
        *values: Values of the components: inputs, names of two models, number of texts
            and, if the tab has them, required and forbidden words.
    """
    asked, (first, second, count, *texts) = values[:inputs], values[inputs:]
    options: dict[str, Any] = {"n": int(count)}
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
        except Exception as error:  # inputs of strangers must not end the page
            traceback.print_exc(file=sys.stderr)
            problem = f"The page failed: {type(error).__name__}."
            shown.append(views.error_view(problem, title))
    return f'<div class="kc-views">{"".join(shown)}</div>'


def photo_answer(predictor, path, options, title):
    """Captions a photo; returns HTML."""
    pixels = photo_at(path)
    prediction = generated(predictor, {"photo": pixels}, options)
    return views.photo_view(prediction, pixels, title)


def question_answer(predictor, path, question, options, title):
    """Answers a question about a photo; returns HTML."""
    pixels = photo_at(path)
    if not (question or "").strip():
        raise InputError("There is no question yet: write one, and press Enter.")
    options = {"n": min(options["n"], len(predictor.model.answers))}
    prediction = attended(predictor, {"photo": pixels, "question": question}, options)
    return views.photo_view(prediction, pixels, title)


def clip_answer(predictor, path, options, title):
    """Captions a clip; returns HTML."""
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
    """Translates a sentence; returns HTML."""
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
    """Generates texts by a beam that is wide enough for all shown texts."""
    model = predictor.model
    assert not isinstance(model, Answering)  # its tab is another
    beam = max(options["n"], model.decoding.beam_size)
    return attended(predictor, record, {**options, "beam_size": beam})


def attended(predictor, record, options):
    """The prediction of a model for a record, with attention."""
    decoding = {name: x for name, x in options.items() if name != "n"}
    check_effort(predictor, [record], options["n"], decoding, LIMITS.max_effort)
    [prediction] = predictor([record], attention=True, **options)
    return prediction
