"""Response models encode their own responses."""

from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Literal, NamedTuple

import msgspec
import pytest
from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Json, JsonObject, Model, Written

AT = datetime(2026, 11, 15, 9, tzinfo=UTC)


class Colour(IntEnum):
    red = 0
    blue = 1


class Size(StrEnum):
    small = "S"


class PartOut(Model):
    part_id: Id
    note: str | None


class Part(NamedTuple):
    part_id: int
    note: str | None = None


class ThingOut(Model):
    id: Id
    from_: Annotated[datetime, From("since"), Field(alias="from")]
    colour: Literal["red", "blue"]
    payload: Json
    parts: list[PartOut]
    replaced_by: Id | None
    extra: PartOut | None = None


class Thing(NamedTuple):
    id: int = 7
    since: datetime = AT
    colour: Colour | str | None = Colour.blue
    payload: str | None = '{"a": 1.50}'
    parts: tuple[Part, ...] = (Part(1, "first"), Part(2))
    replaced_by: int | None = None


def text(encoded: object) -> str:
    return msgspec.json.encode(encoded).decode()


def test_the_model_gives_the_names_their_order_and_the_form_of_every_value():
    assert text(ThingOut.encode(Thing())) == (
        '{"id":"7","from":"2026-11-15T09:00:00Z","colour":"blue","payload":{"a": 1.50},'
        '"parts":[{"partId":"1","note":"first"},{"partId":"2","note":null}],"replacedBy":null}'
    )


def test_an_argument_replaces_an_attribute_and_is_converted_like_one():
    encoded = ThingOut.encode(Thing(), replaced_by=9, colour=Colour.red, parts=[Part(3)], id=8)

    assert text(encoded) == (
        '{"id":"8","from":"2026-11-15T09:00:00Z","colour":"red","payload":{"a": 1.50},'
        '"parts":[{"partId":"3","note":null}],"replacedBy":"9"}'
    )


def test_arguments_alone_are_enough():
    assert text(PartOut.encode(note="x", part_id=5)) == '{"partId":"5","note":"x"}'


def test_an_argument_that_is_not_a_field_is_refused():
    with pytest.raises(TypeError, match="PartOut has no field colour, size"):
        PartOut.encode(Part(1), colour="red", size="S")


def test_a_public_name_is_not_the_name_of_a_field():
    with pytest.raises(TypeError, match="PartOut has no field partId"):
        PartOut.encode(Part(1), partId=2)


def test_a_field_that_neither_the_source_nor_an_argument_provides_is_refused():
    with pytest.raises(AttributeError, match="replaced_by"):
        ThingOut.encode(Part(1), id=1, from_=AT, colour="red", payload=None, parts=[])
    with pytest.raises(AttributeError, match="note"):
        PartOut.encode(part_id=1)


def test_an_optional_field_is_left_out_unless_an_argument_gives_it():
    assert '"extra"' not in text(ThingOut.encode(Thing()))
    assert text(ThingOut.encode(Thing(), extra=None)).endswith(',"extra":null}')
    assert text(ThingOut.encode(Thing(), extra=Part(4))).endswith(',"extra":{"partId":"4","note":null}}')


def test_an_optional_field_between_others_keeps_its_place():
    class Middle(Model):
        first: int
        second: int | None = None
        third: int

    class Ends(NamedTuple):
        first: int
        third: int

    assert text(Middle.encode(Ends(1, 3))) == '{"first":1,"third":3}'
    assert text(Middle.encode(Ends(1, 3), second=2)) == '{"first":1,"second":2,"third":3}'


def test_json_text_is_neither_parsed_nor_changed():
    class Stored(Model):
        payload: Json
        data: JsonObject | None

    payload = '{"amount": 1e400, "digits": 0.10000000000000000000001, "twice": 1, "twice": 2}'

    assert text(Stored.encode(payload=payload, data=None)) == f'{{"payload":{payload},"data":null}}'
    assert text(Stored.encode(payload=None, data='{ "a":1}')) == '{"payload":null,"data":{ "a":1}}'


def test_an_enum_is_its_name_and_a_string_is_itself():
    class Named(Model):
        colour: Literal["red", "blue"] | None
        sizes: list[Literal["S", "M"]]
        dry_run: Literal[True]

    named = Named.encode(colour=Colour.red, sizes=[Size.small, "M"], dry_run=True)

    assert text(named) == '{"colour":"red","sizes":["S","M"],"dryRun":true}'
    assert text(Named.encode(colour=None, sizes=[], dry_run=True)) == '{"colour":null,"sizes":[],"dryRun":true}'


def test_ids_and_objects_that_are_texts_are_strings():
    class Texts(Model):
        ids: list[Id]
        rate: Written | None

    assert text(Texts.encode(ids=(1, 2**53 + 1), rate=1.5)) == '{"ids":["1","9007199254740993"],"rate":"1.5"}'


def test_a_model_that_is_already_encoded_passes_unchanged():
    class Pair(Model):
        left: PartOut
        right: PartOut

    pair = Pair.encode(left=PartOut.encode(part_id=1, note=None), right={"by": "hand"})

    assert text(pair) == '{"left":{"partId":"1","note":null},"right":{"by":"hand"}}'


def test_a_model_of_one_field_is_encoded():
    class One(Model):
        part: PartOut

    class Holder(NamedTuple):
        part: Part

    assert text(One.encode(part=Part(1))) == text(One.encode(Holder(Part(1)))) == '{"part":{"partId":"1","note":null}}'


def test_a_union_of_types_with_different_forms_is_refused():
    class Either(Model):
        value: Id | PartOut

    with pytest.raises(TypeError, match="no single conversion"):
        Either.encode(value=1)
