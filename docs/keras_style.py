"""What griffe does not know of this package, for the pages of its API."""

import inspect
import re

import griffe

SECTION = r"^({}):\n((?: +.*\n?|\n)+)"  # a title, and what is indented below it
ENTRY = re.compile(r"^(\*{0,2}\w[\w, *]*): ", re.MULTILINE)
OF_ALL = "Call arguments|Reference|References"
OF_CLASSES = f"{OF_ALL}|Returns"  # of its call, whose type the class does not say


class KerasStyle(griffe.Extension):
    """Knows functions that are named as their modules, and sections of Keras's style.

    `Call arguments:` and the like are rewritten as Markdown.
    """

    def on_package(self, *, pkg, **kwargs):
        for package in pkg.modules.values():
            for name in map(str, package.exports or ()):
                module = package.members.get(name)
                if isinstance(module, griffe.Module) and name in module.members:
                    function = griffe.Alias(name, module.members[name], parent=package)
                    package.set_member(name, function)

    def on_class(self, *, cls, **kwargs):
        rewrite(cls.docstring, OF_CLASSES)

    def on_function(self, *, func, **kwargs):
        rewrite(func.docstring, OF_ALL)


def rewrite(docstring, titles):
    if docstring:
        section = re.compile(SECTION.format(titles), re.MULTILINE)
        docstring.value = section.sub(as_markdown, docstring.value)


def as_markdown(section):
    title, body = section[1], inspect.cleandoc(section[2])
    if title == "Call arguments" and ENTRY.match(body):
        body = ENTRY.sub(r"- **`\1`** - ", body)
        body = re.sub(r"^(?!- )", "    ", body, flags=re.MULTILINE)
    return f"**{title}:**\n\n{body}\n\n"
