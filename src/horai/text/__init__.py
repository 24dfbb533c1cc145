"""What users are told when something cannot be done: the sentences of every error.

| module   | promise                                                     |
|----------|-------------------------------------------------------------|
| wrong    | what is wrong with a field                                  |
| refusals | why a request is refused as a whole                         |
| hints    | what to do instead                                          |
| shapes   | the same of what has not the shape that is asked for        |
| degraded | why the scheduler is degraded                               |
| titles   | the kinds of errors, by the codes that problems carry       |
"""

from horai.text.degraded import Degraded
from horai.text.hints import Hint
from horai.text.refusals import Refused
from horai.text.shapes import Misshapen
from horai.text.titles import Title
from horai.text.wrong import Wrong, told_by

__all__ = ["Degraded", "Hint", "Misshapen", "Refused", "Title", "Wrong", "told_by"]
