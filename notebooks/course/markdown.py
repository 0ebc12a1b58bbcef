"""How is a table written down? As Markdown, for pages and for what notebooks print."""


def table(columns, lines, words=None):
    """`words`: of so many columns from the left; those behind them are numbers, at the right."""
    words = len(columns) if words is None else words
    rules = ["---"] * words + ["---:"] * (len(columns) - words)
    lines = [columns, rules, *lines]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
