"""What Dynamo hands over to no backend, such as nn.LSTM: said once, as what stays with eager is."""

import re

from torch._dynamo.callback import callback_handler
from torch._dynamo.utils import counters

from ._parts import left_to_eager

_KNOWN = set()


def _look(_arguments=None):
    """Says why Dynamo ended graphs, or began none, since it was last asked. It counts that by message."""
    for message in set(counters["graph_break"]) - _KNOWN:
        _KNOWN.add(message)
        found = re.search(r"Explanation: (.*)", message)
        left_to_eager(found[1].strip() if found else message.splitlines()[0])


def listen():
    """Looks whenever Dynamo has compiled something."""
    if _look not in callback_handler.end_callbacks:
        _KNOWN.update(counters["graph_break"])
        callback_handler.register_end_callback(_look)
