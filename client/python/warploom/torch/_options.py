"""Checks the options of torch.compile, which are those of `warploom tune`, and raises errors for wrong ones."""

import contextlib
import difflib
import functools
import pathlib
import re
import subprocess
import tempfile

from .._program import ProgramError, call, program

# Options of `warploom tune` that the backend sets itself, or that do not apply to it.
_TAKEN = {"out", "json", "html", "weight", "bind", "help", "trace"}
TIMES = ("later", "first")  # values of the option "tune": whether the first call waits for the search
# Options that say how much is searched.
_OF_SEARCHES = {"trials", "effort", "now", "budget", "retune", "strategy", "at_once"}
# The text of a minimal graph: if the program refuses to tune this one, its options are wrong.
_PROBE = 'graph {\n  %0 = input "x" : f32[1] normal(0,1)\n  %1 = neg %0 : f32[1]\n  output "y" %1\n}\n'


@functools.cache
def _known():
    """Returns the names of the allowed options, read from the program's help."""
    said = subprocess.run([program(), "tune", "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True)
    names = re.findall(r"^\s+(?:-\w,)?--([a-z0-9-]+)", said.stdout, re.MULTILINE)
    return sorted({name.replace("-", "_") for name in names} - _TAKEN | {"progress", "token", "tune", "share"})


def checked(options, mode=None):
    """Returns the options, with defaults for "effort" and "progress". Raises TypeError for an unknown option, with a suggestion."""
    if mode not in (None, "default"):
        raise TypeError(f'the backend "warploom" has no mode "{mode}"; options={{"effort": "thorough"}} searches longer')
    given = {str(name).replace("-", "_"): value for name, value in (options or {}).items()}
    try:
        wrong = next((name for name in given if name not in _known()), None) if given else None
    except (ProgramError, OSError, subprocess.SubprocessError):
        wrong = None  # the program `warploom` cannot be run, which the tuning will report
    if wrong in _TAKEN:
        raise TypeError(f'the backend "warploom" says --{wrong.replace("_", "-")} itself; it is no option here')
    if wrong is not None:
        near = difflib.get_close_matches(wrong, _known(), 1)
        meant = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(_known())}"
        raise TypeError(f'the backend "warploom" has no option "{wrong}"; {meant}')
    progress = given.get("progress")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f'the option "progress" is True, False or a function; found {progress!r}')
    when = given.get("tune", "later")
    if when not in TIMES:
        raise TypeError(f'the option "tune" is {" or ".join(map(repr, TIMES))}; found {when!r}')
    # What must not search has nothing to do later.
    searches = not given.get("require_cached") and not given.get("now") and given.get("effort") != "now"
    _check_share(given, in_background=searches and when == "later")
    return {"effort": "quick", "progress": None} | given | {"tune": when if searches else "first"}


def _check_share(given, in_background):
    """Raises TypeError unless the option "share" is missing, or is a part of the machine for searches in the background, on this machine."""
    share = given.get("share")
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise TypeError(f'the option "share" is a number above 0 and at most 1; found {share!r}')
    if not in_background or "server" in given:
        why = 'the workers of "server" search' if in_background else "nothing is searched in the background"
        raise TypeError(f'the option "share" bounds searches in the background on this machine, and {why}; leave it out')


def of_the_first_answer(options):
    """Returns the options for kernels without a search, in place of those that say how much is searched."""
    return {name: value for name, value in options.items() if name not in _OF_SEARCHES} | {"effort": "now"}


def raise_if_wrong(fault, options):
    """Raises ValueError if the program failed because of the values of these options, not because of the graph."""
    code = fault.code if isinstance(fault, ProgramError) else 0
    if code == 1:
        raise ValueError(f'options of the backend "warploom": {fault}') from fault
    if code != 2 or set(options) <= {"effort", "progress"}:
        return
    _probe(options, fault)


def raise_if_later_wrong(options):
    """Raises ValueError if the values of these options are wrong. For options that only a search in the background would use."""
    if any(name in _OF_SEARCHES and value != "quick" for name, value in options.items()):
        with contextlib.suppress(OSError):  # the first answer reports that nothing can be written or started
            _probe_once(repr(sorted((name, value) for name, value in options.items() if name != "progress")), options)


_PROBED = set()  # the options that were found to be right


def _probe_once(words, options):
    if words not in _PROBED:
        _probe(options)
        _PROBED.add(words)


def _probe(options, fault=None):
    """Raises ValueError, with the message of `fault`, if the program refuses to tune even a minimal graph with these options."""
    tried = {name: value for name, value in options.items() if name not in ("progress", "retune", "require_cached")}
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        graph = pathlib.Path(folder) / "probe.graph"
        graph.write_text(_PROBE)
        try:
            call("tune", graph, require_cached=True, **({} if "server" in tried else {"store": graph.with_suffix(".db")}) | tried)
        except ProgramError as again:
            if again.code in (1, 2):
                raise ValueError(f'options of the backend "warploom": {fault or again}') from (fault or again)
