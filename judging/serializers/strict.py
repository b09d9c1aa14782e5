"""What every request body has in common: no unknown names, and values of just the kind that the schema says.

Forms of several parts (uploads) and queries can only send text; there numbers and truth values may be written as text.
"""

import math
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from django.db import models
from django.http import QueryDict
from rest_framework import serializers
from rest_framework.fields import empty

LARGEST_INTEGER = 2_147_483_647


class StrictMixin:
    """A name that nobody knows is an error: a misspelled one would else be passed over in silence."""

    is_strict = True  # the description of the API says so

    def to_internal_value(self, data: Any) -> Any:
        unknown = [name for name in data if name not in self.fields] if isinstance(data, Mapping) else []  # type: ignore[attr-defined]
        if unknown:
            raise serializers.ValidationError(
                {str(name)[:100]: ["there is no such field"] for name in unknown}
            )
        return super().to_internal_value(data)  # type: ignore[misc]


def _is_sent_as_text(field: serializers.Field[Any, Any, Any, Any]) -> bool:
    return isinstance(field.root, StrictQuery) or isinstance(
        getattr(field.root, "initial_data", None), QueryDict
    )


class Word(serializers.CharField):
    """Text that a database can store: JSON can write half a character.

    One whose default is empty may be sent empty, too: generated clients send defaults.
    """

    def __init__(self, **named: Any) -> None:
        named.setdefault("allow_blank", named.get("default") == "")
        super().__init__(**named)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be text")
        text: str = super().to_internal_value(data)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise serializers.ValidationError("contains half a character") from None
        return text


class Token(serializers.UUIDField):
    """A UUID as text: Django REST framework would take a whole number for one, too."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str | uuid.UUID):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class LongWord(Word):
    """Text of several lines, their ends as the database keeps them."""

    def to_internal_value(self, data: Any) -> str:
        return super().to_internal_value(data).replace("\r\n", "\n")


class WholeNumber(serializers.IntegerField):
    def __init__(self, **named: Any) -> None:
        named.setdefault("max_value", LARGEST_INTEGER)
        named.setdefault("min_value", -LARGEST_INTEGER)
        super().__init__(**named)

    def to_internal_value(self, data: Any) -> int:
        if not (isinstance(data, int) and not isinstance(data, bool)) and not _is_sent_as_text(self):
            raise serializers.ValidationError("must be a whole number")
        number: int = super().to_internal_value(data)
        return number


class Finite(serializers.FloatField):
    """A number: neither NaN nor infinite (1e400 is), and neither true nor false."""

    def to_internal_value(self, data: Any) -> float:
        if (isinstance(data, bool) or not isinstance(data, int | float)) and not _is_sent_as_text(self):
            raise serializers.ValidationError("must be a number")
        number: float = super().to_internal_value(data)
        if not math.isfinite(number):
            raise serializers.ValidationError("must be a finite number")
        return number


class Flag(serializers.BooleanField):
    default_empty_html = empty  # what a form does not name was not said; it is not false

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool) and not _is_sent_as_text(self):
            raise serializers.ValidationError("must be true or false")
        truth: bool = super().to_internal_value(data)
        return truth


class Choice(serializers.ChoiceField):
    """One of the words; a number that reads like one is none."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be one of the words")
        word: str = super().to_internal_value(data)
        return word


class TableChoice(Choice):
    """One of the keys of a table, which is read anew by each serializer."""

    def __init__(self, choices: Callable[[], list[tuple[str, str]]], **named: Any) -> None:
        super().__init__(choices(), **named)


class Strict(StrictMixin, serializers.Serializer[Any]):
    """The base of request bodies that are no model's."""


class StrictQuery(Strict):
    """The base of what an address asks after its question mark, and of the forms of the same fields."""


class StrictModel(StrictMixin, serializers.ModelSerializer[Any]):
    """The base of request bodies and answers that are a model's; the fields are listed one by one, always."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: Word,
        models.TextField: LongWord,
        models.FloatField: Finite,
        models.BooleanField: Flag,
        models.PositiveSmallIntegerField: WholeNumber,
        models.PositiveIntegerField: WholeNumber,
        models.SmallIntegerField: WholeNumber,
    }
    serializer_choice_field = Choice
