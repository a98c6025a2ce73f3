"""The report of a search: a dict with the keys that docs/report.md describes, which notebooks show as a table and a page."""

import html

_STYLE = "border-bottom: 1px solid #8886; padding: 2px 8px; text-align: "


def _time(ns):
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns:.0f} ns" if ns else "-"


def _times(before, after):
    return f"{before / after:.2f}x" if before and after else "-"


def _row(cells, tag="td"):
    aligned = (f'<{tag} style="{_STYLE}{"left" if i == 0 else "right"}">{html.escape(cell)}</{tag}>' for i, cell in enumerate(cells))
    return f"<tr>{''.join(aligned)}</tr>"


class Report(dict):
    """What `warploom tune --json` writes. With several sizes it has `sizes`, and a report for each.

    page: the page that `--html` writes, with search curves, roofline and the fused graph; None for several sizes, and for what no
    search of this process made.
    """

    page = None

    @property
    def speed_up(self):
        """How many times as fast the tuned kernels are as one kernel for each operation; of the first size."""
        totals = self.sizes()[0][1]["totals"]
        return totals["default_ns"] / totals["best_ns"]

    def sizes(self):
        """The extents that were tuned for, as text, and the report of each."""
        if "sizes" not in self:
            return [("", self)]
        text = [", ".join(f"{name}={extent}" for name, extent in one["bind"].items()) for one in self["sizes"]]
        return list(zip(text, (one["report"] for one in self["sizes"])))

    def rows(self):
        """What a notebook shows: for every group and then for the whole, what it is, how often it occurs, the number of kernels,
        times before and after, and the speed-up. All are text."""
        out = []
        for size, report in self.sizes():
            for group in report["groups"]:
                kernels = f"{group['kernels_default']} → {group['kernels']}"
                times = group["default_ns"], group["best_ns"]
                out.append([group["what"], str(group["count"]), kernels, *map(_time, times), _times(*times)])
            totals = report["totals"]
            kernels = f"{totals['kernels_default']} → {totals['kernels']}"
            times = totals["default_ns"], totals["best_ns"]
            out.append([f"total {size}".rstrip(), "", kernels, *map(_time, times), _times(*times)])
        return out

    def _repr_html_(self):
        heads = _row(["group", "count", "kernels", "default", "best", "speed-up"], "th")
        table = f"<table>{heads}{''.join(map(_row, self.rows()))}</table>"
        if self.page is None:
            return table
        # A document of its own, whose styles are not the notebook's.
        frame = f'<iframe srcdoc="{html.escape(self.page)}" title="Report" style="width: 100%; height: 60em; border: 1px solid #8886"></iframe>'
        return f"{table}<details><summary>Search, roofline and graph</summary>{frame}</details>"
