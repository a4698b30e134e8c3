import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def without_proxies() -> Iterator[None]:
    """Removes the proxies of the environment in a `with` block."""
    names = [name for name in os.environ if name.lower().endswith("_proxy")]
    proxies = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(proxies)
