"""What does a picture show? Words and filled shapes: another Matplotlib may write another file."""

import re


def shown(svg):
    words = re.findall(r"<!-- (.*?) -->|<desc>(.*?)</desc>", svg)
    return words, re.findall(r"fill: (#[0-9a-f]{6})|(<(?:path|rect) [^L\n]*|<text .*)", svg)
