"""The report of a search: a dict with the keys of docs/report.md, which notebooks show as a table and an HTML page."""

import html

_STYLE = "border-bottom: 1px solid #8886; padding: 2px 8px; text-align: "


def _time(ns):
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns:.0f} ns" if ns else "-"


def _times(before, after):
    return f"{before / after:.2f}x" if before and after else "-"


def _before_and_after(row):
    """Returns the times before and after tuning and the speed-up as text; "~" marks what is estimated."""
    times, about = (row["default_ns"], row["best_ns"]), "~" if row.get("default_estimated") else ""
    return [about + _time(times[0]), _time(times[1]), about + _times(*times)]


def _row(cells, tag="td"):
    aligned = (f'<{tag} style="{_STYLE}{"left" if i == 0 else "right"}">{html.escape(cell)}</{tag}>' for i, cell in enumerate(cells))
    return f"<tr>{''.join(aligned)}</tr>"


class Report(dict):
    """The report that `warploom tune --json` writes. With several sizes, `sizes` is a list with a report for each.

    page: the HTML page that `--html` writes, with search curves, roofline and the fused graph; None for several sizes, and if the report is
    not of a search that this process ran.
    """

    page = None

    @property
    def speed_up(self):
        """The time of the kernels for single operations divided by the time of the tuned kernels; for the first size."""
        totals = self.sizes()[0][1]["totals"]
        return totals["default_ns"] / totals["best_ns"]

    def sizes(self):
        """A list of pairs: the extents of a size as text, such as "batch=8" ("" for a single size), and the size's report."""
        if "sizes" not in self:
            return [("", self)]
        text = [", ".join(f"{name}={extent}" for name, extent in one["bind"].items()) for one in self["sizes"]]
        return list(zip(text, (one["report"] for one in self["sizes"])))

    def rows(self):
        """Returns the rows of the table as lists of text, one for every group and a last one for the whole graph: what is computed, how
        often it occurs, the number of kernels, the times before and after tuning, and the speed-up."""
        out = []
        for size, report in self.sizes():
            for group in report["groups"]:
                kernels = f"{group['kernels_default']} → {group['kernels']}"
                out.append([group["what"], str(group["count"]), kernels, *_before_and_after(group)])
            totals = report["totals"]
            kernels = f"{totals['kernels_default']} → {totals['kernels']}"
            out.append([f"total {size}".rstrip(), "", kernels, *_before_and_after(totals)])
        return out

    def _repr_html_(self):
        heads = _row(["group", "count", "kernels", "default", "best", "speed-up"], "th")
        table = f"<table>{heads}{''.join(map(_row, self.rows()))}</table>"
        if self.page is None:
            return table
        # The frame makes the page a document of its own, so that its style sheet does not change the notebook.
        frame = f'<iframe srcdoc="{html.escape(self.page)}" title="Report" style="width: 100%; height: 60em; border: 1px solid #8886"></iframe>'
        return f"{table}<details><summary>Search, roofline and graph</summary>{frame}</details>"
