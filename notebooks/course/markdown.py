"""How is a table written down? As Markdown, for pages and for what notebooks print."""


def table(columns, lines):
    lines = [columns, ["---"] * len(columns), *lines]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
