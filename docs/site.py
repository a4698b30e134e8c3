"""Builds the site of the documentation into `site/html`: `make docs`.

The documents keep their places, so that their links are those of the repository. Pages
that are not in it are made here: one for each package of the API, of its docstrings,
and the notebooks'.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

from keras_caption.base.old_names import place_of

PROJECT = pathlib.Path(__file__).resolve().parents[1]
SITE = PROJECT / "site"
PAGES = SITE / "pages"
HTML = SITE / "html"
DOCUMENTS = ("*.md", "docs/**/*.md", "tests/oracles/*.md")
NOTEBOOKS = ("first_ten_minutes", "own_mechanism")


def main():
    for folder in (PAGES, HTML):
        shutil.rmtree(folder, ignore_errors=True)
    with open(PROJECT / "docs" / "zensical.toml", "rb") as file:
        config = tomllib.load(file)
    copy_documents()
    for name in NOTEBOOKS:
        write_page(f"docs/{name}.md", notebook_page(name))
    for name in re.findall(r"api/(\w+)\.md", str(config["nav"])):
        public = f"keras_caption.{name}"
        page = f"# {public}\n\n::: {place_of(public)}\n"
        write_page(f"api/{name}.md", page)
    config |= {
        "site_name": f"keras_caption {version()}",
        "docs_dir": PAGES.name,
        "site_dir": HTML.name,
        **repository(),
    }
    # JSON is YAML.
    (SITE / "mkdocs.yml").write_text(json.dumps(config, indent=1))
    build = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    build += ["--config-file", SITE / "mkdocs.yml"]
    sys.exit(subprocess.run(build, check=False).returncode)


def copy_documents():
    """Copies the documents, and what they link to, to their places in the repository.

    Links to notebooks lead to their pages.
    """
    for pattern in DOCUMENTS:
        for page in PROJECT.glob(pattern):
            text = page.read_text()
            for link in re.findall(r"\]\(([^)#:\s]+)", text):
                linked = (page.parent / link).resolve()
                if linked.is_file() and linked.suffix != ".md":
                    copy(linked)
            for name in NOTEBOOKS:
                text = text.replace(f"{name}.ipynb)", f"{name}.md)")
            copy(page).write_text(text)
    copy(PROJECT / "docs" / "site.css")


def copy(path):
    target = PAGES / path.relative_to(PROJECT)
    target.parent.mkdir(parents=True, exist_ok=True)
    return pathlib.Path(shutil.copy(path, target))


def write_page(name, text):
    """Writes a page that the repository does not have: it has no "edit this page"."""
    path = PAGES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n<style>a[rel=edit] {{ display: none }}</style>\n")


def notebook_page(name):
    """The cells of a notebook as Markdown."""
    notebook = json.loads((PROJECT / "docs" / f"{name}.ipynb").read_text())
    cells = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        is_code = cell["cell_type"] == "code"
        cells.append(f"```python\n{text}\n```" if is_code else text)
    return "\n\n".join(cells) + "\n"


def version():
    with open(PROJECT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]["version"]


def repository():
    """Where pages are edited: GitHub's repository, if it is known."""
    name = os.environ.get("GITHUB_REPOSITORY")
    if not name:
        return {}
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    return {"repo_url": f"{server}/{name}", "edit_uri": "edit/main/"}


if __name__ == "__main__":
    main()
