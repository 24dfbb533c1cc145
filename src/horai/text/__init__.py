"""Translatable sentences: English text plus code and parameters. They are the texts of every error.

| module   | sentences                                                   |
|----------|-------------------------------------------------------------|
| wrong    | errors of a field                                           |
| refusals | errors of a request as a whole                              |
| hints    | advice that follows an error                                |
| shapes   | errors of a field's type, limits or presence                |
| actions  | limits that the governor puts on dispatch                   |
| degraded | reasons why the scheduler is degraded                       |
| titles   | titles of errors, by the codes of problems                  |
"""

from horai.text.actions import Action
from horai.text.degraded import Degraded
from horai.text.hints import Hint
from horai.text.refusals import Refused
from horai.text.shapes import Misshapen
from horai.text.titles import Title
from horai.text.wrong import Wrong, mismatch, told_by

__all__ = ["Action", "Degraded", "Hint", "Misshapen", "Refused", "Title", "Wrong", "mismatch", "told_by"]
