import jinja2


def templates_of(package: str) -> jinja2.Environment:
    """The templates of pages in the folder `templates` of a package.

    Values are escaped, and one that a template lacks is an error.
    """
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
