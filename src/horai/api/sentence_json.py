"""Sentences as public JSON."""

from typing import Any

from horai.text.phrase import Phrase
from horai.wire.encode import Encoded
from horai.wire.sentences import Sentence


def sentence_fields(name: str, text: str | None) -> dict[str, Any]:
    """Return a text as the field `name` of a model and, for a `Phrase`, its sentence as the field `<name>_said`."""
    return {name: str(text), f"{name}_said": encode_sentence(text)} if isinstance(text, Phrase) else {name: text}


def encode_sentence(phrase: Phrase) -> Encoded:
    """Return the code and the parameters of a sentence. A parameter may itself be a sentence, or a list of them."""
    params = {name: _encode_param(value) for name, value in phrase.params.items()}
    return Sentence.encode(phrase, text=str(phrase), params=params)


def _encode_param(value: str | int | tuple[Phrase, ...]) -> Any:
    if isinstance(value, tuple):
        return [encode_sentence(part) for part in value]
    return encode_sentence(value) if isinstance(value, Phrase) else value
