"""Translatable sentences on the wire."""

from typing import Union

from horai.wire.fields import Model


class Sentence(Model):
    """The code and the parameters of the text in the field of the same name without `Said`; `text` is the English.

    A client shows the sentence `code` in its own language, or `text` if it does not know the code. A parameter may
    itself be a sentence; an empty parameter was left open. A sentence with `parts` is these sentences, joined by the
    text that `code` stands for.
    """

    code: str
    text: str
    params: dict[str, Union[str, int, "Sentence", list["Sentence"]]]
