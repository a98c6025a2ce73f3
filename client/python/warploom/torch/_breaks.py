"""Reports code that Dynamo gives to no backend, such as nn.LSTM, by one warning for each reason, as is done for operators that stay with
eager."""

import re

from torch._dynamo.callback import callback_handler
from torch._dynamo.utils import counters

from ._parts import left_to_eager

_KNOWN = set()


def _look(_arguments=None):
    """Reports the new reasons for which Dynamo ended a graph or began none. Dynamo's counter "graph_break" has the reasons as messages."""
    for message in set(counters["graph_break"]) - _KNOWN:
        _KNOWN.add(message)
        found = re.search(r"Explanation: (.*)", message)
        left_to_eager(found[1].strip() if found else message.splitlines()[0])


def listen():
    """Makes Dynamo call _look() after each compilation."""
    if _look not in callback_handler.end_callbacks:
        _KNOWN.update(counters["graph_break"])
        callback_handler.register_end_callback(_look)
