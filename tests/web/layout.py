"""How pages use screens of different widths: nothing is wider than the screen, and names stand above values if it is narrow."""

from harness import expect


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
