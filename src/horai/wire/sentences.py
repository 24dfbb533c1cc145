"""What Horai says, on the wire: for who says it in another language."""

from typing import Union

from horai.wire.fields import Model


class Sentence(Model):
    """Which sentence the text of the same name without `Said` is, and what was put into it; `text` is the English.

    A console says the sentence `code` in its own language, or `text` where it does not know it. A parameter may be a
    sentence itself; an empty one is a place that was left open. One with `parts` is those sentences, joined by what `code`
    stands for.
    """

    code: str
    text: str
    params: dict[str, Union[str, int, "Sentence", list["Sentence"]]]
