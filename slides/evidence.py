"""Which pictures belong to the findings? One or two below each heading, drawn from the records."""

PAGES = [
    ("Findings", "evidence/index.html"),
    ("Claims and verdicts", "evidence/claims.html"),
    ("What the sources print", "evidence/published.html"),
    ("Recorded runs", "evidence/recorded.html"),
]


def with_figures(body):
    return body
