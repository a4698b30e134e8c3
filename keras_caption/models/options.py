import dataclasses
from collections.abc import Mapping
from typing import Any, Self


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base of options that are keywords of several models, and one value within them.

    A `TypedDict` names the options among the keywords of a constructor, so that type
    checkers and editors know them; the fields of a subclass have their default values.
    """

    @classmethod
    def of(cls, keywords: Mapping[str, Any], **others: Any) -> Self:
        """Collects the options of this class among the keywords of a constructor.

        Args:
            keywords: Mapping from name to value; those of other names are ignored.
            **others: Fields that are no keywords of the model.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        given = {name: value for name, value in keywords.items() if name in names}
        return cls(**given, **others)
