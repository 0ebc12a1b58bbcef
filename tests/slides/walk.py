"""What could an audience not read? Walks a deck as a speaker would, fragment by fragment."""

from pathlib import Path

SMALLEST = 20  # pixels of text on a slide of 1280 x 720
LOOK = Path(__file__).with_name("walk.js").read_text(encoding="utf-8")
LOOK = LOOK.replace("SMALLEST", str(SMALLEST))

PHONE = (390, 844)  # held upright
ON_A_PHONE = 14  # pixels of text
READ = Path(__file__).with_name("read.js").read_text(encoding="utf-8")
READ = READ.replace("SMALLEST", str(ON_A_PHONE)).replace("WIDTH", str(PHONE[0]))


def faults(browser, path, dark=False, shots=None):
    """Every fault of a deck; `shots`: a folder for a picture of each slide at its last fragment."""
    page, found, at = browser.page(dark=dark), [], 0
    page.open(path)
    while True:
        where = page.run("Reveal.getCurrentSlide().id")
        found += [f"{path.stem}, slide {where}: {fault}" for fault in page.run(LOOK)]
        if shots and not page.run("Reveal.availableFragments().next"):
            Path(shots).mkdir(parents=True, exist_ok=True)
            page.shot(Path(shots, f"slide-{at:02}.png"))
            at += 1
        if page.run("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
            break
        page.run("Reveal.next()")
    return list(dict.fromkeys(found + complaints(page, path)))


def faults_on_a_phone(browser, path, dark=False):
    """Every fault of a deck on an upright phone, where its slides are a page that scrolls."""
    page = browser.page(*PHONE, dark=dark, phone=True)
    page.open(path)
    found = [f"{path.stem}: {fault}" for fault in page.run(READ)]
    return list(dict.fromkeys(found + complaints(page, path)))


def complaints(page, path):
    """What the console said, and what the page asked of other machines."""
    said = [f"{path.stem}: console: {error}" for error in page.errors]
    return said + [f"{path.stem}: asks for {url}" for url in page.strangers()]
