"""The page for trying models in a browser: `keras-caption demo`."""

from keras_caption.apps.serve.demo.proxies import without_proxies

with without_proxies():  # Gradio reads the proxies of the environment when imported
    from keras_caption.apps.serve.demo.page import build_page, launch

__all__ = ["build_page", "launch"]
