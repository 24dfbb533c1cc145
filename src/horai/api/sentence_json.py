"""Sentences as public JSON."""

from typing import Any

from horai.text.phrase import Phrase


def sentence_fields(name: str, text: str | None) -> dict[str, Any]:
    """Return a text under its name and, for a `Phrase`, its code and parameters under `<name>Said`."""
    return {name: str(text), f"{name}Said": sentence_json(text)} if isinstance(text, Phrase) else {name: text}


def sentence_json(phrase: Phrase) -> dict[str, Any]:
    """Return the JSON of a sentence and of the sentences in its parameters."""
    params = {name: _param_json(value) for name, value in phrase.params.items()}
    return {"code": phrase.code, "text": str(phrase), "params": params}


def _param_json(value: str | int | tuple[Phrase, ...]) -> Any:
    if isinstance(value, tuple):
        return [sentence_json(part) for part in value]
    return sentence_json(value) if isinstance(value, Phrase) else value
