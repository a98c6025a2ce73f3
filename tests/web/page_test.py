#!/usr/bin/env python3
"""The report as an HTML page (`--html`) in a real Chromium: of a search and of its bundle, light and dark, narrow, printed, and operated by
the keyboard. The page makes no requests and writes nothing to the console."""

import graphs
from browser import Browser, program
from harness import Scratch, expect, skip
from layout import fits, large, names_above
from web_test import clean, pictures


def opened(browser, path, *texts):
    browser.open(f"file://{path}")
    text = browser.text()
    for part in texts:
        expect(part in text, f"{path} does not say {part}:\n{text}")


def narrow(browser):
    """On a narrow screen, nothing is wider than the screen but pictures, which scroll inside the page, and names stand above values."""
    browser.size(360, 800)
    fits(browser, 360)
    names_above(browser, "dl")
    browser.size(1280, 900)


def drawn_in_the_dark(browser):
    """In dark colours, the picture of the graph has light texts on the dark page; on paper, dark ones."""
    colours = "[getComputedStyle(document.querySelector('.wl-picture text')).fill, getComputedStyle(document.querySelector('.paper')).backgroundColor]"
    for media, scheme, light in (("screen", "light", False), ("screen", "dark", True), ("print", "dark", False)):
        browser.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        text, paper = browser.js(colours)
        expect((sum(int(part) for part in text[4:-1].split(",")) > 380) == light, f"{media}, {scheme}: texts are {text}")
        expect(paper == "rgba(0, 0, 0, 0)", f"{media}, {scheme}: the picture lies on {paper}, and not on the page")
    browser.call("Emulation.setEmulatedMedia", media="", features=[])


def by_keyboard(browser):
    """The Tab key reaches everything that scrolls or opens, and Enter opens it."""
    wanted, seen = browser.js("document.querySelectorAll('[tabindex], summary').length"), set()
    for _ in range(wanted):
        browser.press("Tab")
        seen.add(browser.js("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
        if browser.js("document.activeElement.tagName === 'SUMMARY' && !document.activeElement.parentElement.open"):
            browser.press("Enter")
            expect(browser.js("document.activeElement.parentElement.open"), "Enter opens what is folded")
            wanted += browser.js("document.activeElement.parentElement.querySelectorAll('[tabindex]').length")
    expect(len(seen) >= 4, f"{len(seen)} places were reached")
    headings = browser.js("[...document.querySelectorAll('h1,h2,h3')].map((one) => Number(one.tagName[1]))")
    expect(headings[0] == 1 and headings.count(1) == 1, headings)
    unnamed = browser.js("[...document.querySelectorAll('[role=region], svg[role=img]')].filter((one) => !one.getAttribute('aria-label')).length")
    expect(unnamed == 0, f"{unnamed} regions and pictures have no name")


def printed(browser):
    browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    colour = browser.js("getComputedStyle(document.body).backgroundColor")
    expect(colour == "rgb(255, 255, 255)", f"paper is {colour}")
    browser.call("Emulation.setEmulatedMedia", media="")
    expect(len(browser.call("Page.printToPDF")["data"]) > 10_000, "the printed page is empty")


def main():
    if not program():
        skip("there is no Chromium")
    with Scratch() as scratch:
        (scratch.root / "layer.graph").write_text(graphs.SOFTMAX_MATMUL)
        (scratch.root / "sized.graph").write_text(graphs.SOFTMAX)
        tune = ["warploom", "tune", "layer.graph", "--store", scratch.path("s.db"), "--trials", 8]
        scratch.run(*tune, "--out", "tuned", "--html", "search.html")
        scratch.run("warploom", "report", "tuned", "--store", scratch.path("s.db"), "--html", "bundle.html")
        said = scratch.run("warploom", "report", "nothing", "--store", scratch.path("s.db"), "--html", "new.html", expect=2).err
        expect("nothing" in said and not (scratch.root / "new.html").exists(), said)
        scratch.run("warploom", "report", "tuned", "--html", "no/such/folder.html", "--store", scratch.path("s.db"), expect=2)
        browser = Browser(scratch)
        opened(browser, scratch.path("bundle.html"), "tuned", "Before and after", "What the machine allows", "The graph", "Environment")
        opened(browser, scratch.path("search.html"), "layer.graph", "Before and after", "What the machine allows", "The graph")
        pictures(browser, "report")
        narrow(browser)
        large(browser, "svg.chart")
        drawn_in_the_dark(browser)
        by_keyboard(browser)
        printed(browser)
        clean(browser, "file://")
        browser.close()


if __name__ == "__main__":
    main()
