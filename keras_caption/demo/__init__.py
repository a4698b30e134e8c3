"""The page on which a browser tries models: `keras-caption demo`."""

from keras_caption.demo.proxies import without_proxies

with without_proxies():  # which Gradio looks at when it is imported
    from keras_caption.demo.page import build_page, launch

__all__ = ["build_page", "launch"]
