"""How far is it? A bar while something takes long, and in a notebook a sentence at its end.

with progress("standard", 250, unit="steps") as bar:
    bar.show(10, "loss 6.42")

A terminal gets tqdm's bar. A notebook paints what is written to stderr pink and keeps the empty
block when the bar is gone, so there the bar is HTML, and the sentence takes its place.
"""

import html
import os
import sys
import time
import warnings


class NoBar:
    """Where nobody looks: in a log, in a test, or when asked to be quiet."""

    shown = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def show(self, done, words="", speed=""):
        """`words` stay in the sentence at the end; the speed of a moment does not."""


class TextBar(NoBar):
    """A line of a terminal that is written anew."""

    shown = True

    def __init__(self, title, total, done, unit):
        with warnings.catch_warnings():
            # without ipywidgets the bar is drawn in text, which needs no apology
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
        self.bar = tqdm(total=total, initial=done, desc=title, unit=f" {unit}", leave=False)

    def __exit__(self, *_):
        self.bar.close()

    def show(self, done, words="", speed=""):
        self.bar.n = done
        self.bar.set_postfix_str("  ".join(filter(None, [words, speed])))


class PageBar(NoBar):
    """HTML below a cell, replaced in place. Nothing is shown before there is something to say."""

    shown = True

    def __init__(self, title, total, done, unit):
        self.title, self.total, self.unit = title, total, unit
        self.first = self.done = done
        self.words, self.handle, self.start = "", None, time.perf_counter()

    def __exit__(self, *_):
        if self.handle:
            self.put(html.escape(self.sentence()))

    def show(self, done, words="", speed=""):
        self.done, self.words = done, words
        left = self.duration((self.total - done) * self.seconds() / max(1, done - self.first))
        told = f"{done:,} of {self.total:,} {self.unit}"
        told = ", ".join(filter(None, [told, f"{left} to go", words, speed]))
        label = html.escape(f"{self.title}: {self.unit}", quote=True)
        self.put(
            f'<progress value="{done}" max="{self.total}" aria-label="{label}" '
            f'style="width:16em;vertical-align:middle"></progress> '
            f"{html.escape(f'{self.title}: {told}')}"
        )

    def put(self, page):
        from IPython.display import HTML, display

        page = HTML(f'<div style="font-variant-numeric:tabular-nums">{page}</div>')
        if self.handle:
            self.handle.update(page)
        else:
            self.handle = display(page, display_id=True)

    def sentence(self):
        took = self.duration(self.seconds())
        if self.done < self.total:
            how = f"stopped after {self.done:,} of {self.total:,} {self.unit}, {took}"
        else:
            how = f"{self.done - self.first:,} {self.unit} in {took}"
        return ", ".join(filter(None, [f"{self.title}: {how}", self.words]))

    def seconds(self):
        return time.perf_counter() - self.start

    @staticmethod
    def duration(seconds):
        if seconds < 120:
            return f"{seconds:.0f} s"
        return f"{seconds / 60:.0f} min"


def in_notebook():
    """Does a kernel run this, so that HTML is seen?"""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def progress(title, total, done=0, unit="steps", quiet=None):
    """The bar for this place: of a page, of a terminal, or none. Under CI=true there is none."""
    if os.environ.get("CI") == "true" if quiet is None else quiet:
        return NoBar()
    if in_notebook():
        return PageBar(title, total, done, unit)
    if sys.stderr.isatty():
        return TextBar(title, total, done, unit)
    return NoBar()
