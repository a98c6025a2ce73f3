"""How pages use screens of different widths: nothing is wider than the screen, charts are large, and names stand above values if it is narrow."""

from harness import expect

# A JavaScript expression for the size of each chart and of its smallest text, in pixels of the screen, and for the ratio of its size to that for
# which it was drawn. CHARTS stands for a selector.
DRAWN = """[...document.querySelectorAll('CHARTS')].map((one) => {
    const box = one.getBoundingClientRect(), scale = one.viewBox.baseVal?.width > 0 ? box.width / one.viewBox.baseVal.width : 1;
    const texts = [...one.querySelectorAll('text')].map((text) => scale * parseFloat(getComputedStyle(text).fontSize));
    return {width: box.width, height: box.height, scale, text: Math.min(...texts)}; })"""


def fits(browser, width):
    """Fails if the page, or an element of it that does not scroll, is wider than the screen."""
    wide = browser.js("document.documentElement.scrollWidth")
    expect(wide <= width, f"the page is {wide} wide on a screen of {width}")
    outside = """[...document.querySelectorAll('main *')].filter((one) => !one.closest('.paper, pre, .hidden') && one.getBoundingClientRect().right > innerWidth + 1)
        .map((one) => `${one.tagName} ${one.textContent.slice(0, 60)}`)"""
    expect(browser.js(outside) == [], f"beyond a screen of {width}: {browser.js(outside)}")


def names_above(browser, facts):
    """On a narrow screen, each name of a list of facts is above its value, and each cell of a table has the name of its column."""
    apart = browser.js(f"[...document.querySelectorAll('{facts} dd')].map((one) => one.getBoundingClientRect().top - one.previousElementSibling.getBoundingClientRect().bottom)")
    expect(apart and min(apart) >= -1, f"names stand beside values: {apart}")
    cells = browser.js("[...document.querySelectorAll('tbody td')].filter((one) => one.innerText !== '').map((one) => getComputedStyle(one, '::before').content)")
    expect(cells and all(one not in ("none", "normal", '""') for one in cells), f"cells without names: {cells}")


def large(browser, charts):
    """On narrow and wide screens, charts take the width of the page, are at least 240 pixels high, and have texts that are legible."""
    for width in (400, 1400, 1900):
        browser.size(width, 900)
        # The page may draw a chart again some time after its width has changed. Until then, the style sheet scales the old one.
        fitted = f"one.width > 0.65 * {width} && Math.abs(one.scale - 1) < 0.02"
        browser.until(f"{DRAWN.replace('CHARTS', charts)}.every((one) => {fitted})", f"charts are drawn for a width of {width}")
        drawn = browser.js(DRAWN.replace("CHARTS", charts))
        expect(drawn, f"there are no {charts}")
        for chart in drawn:
            expect(chart["height"] >= 240 and chart["width"] <= width, f"on a screen of {width}: {chart}")
            expect(12 <= chart["text"] <= 20, f"on a screen of {width}, texts have {chart['text']} pixels")
        fits(browser, width)
    browser.size(1280, 900)
