"""Matches a regular expression in a process of its own.

The ``re`` module holds the interpreter's lock while it matches, so a hostile pattern would stall
every thread; a process can be killed. Standard input is JSON ``{"pattern", "texts", "most"}``,
standard output a JSON list of ``[index of the text, line number, line]``.
"""

import json
import re
import sys


def main() -> None:
    """Read the request, write the matches."""
    request = json.load(sys.stdin)
    pattern = re.compile(request["pattern"], re.IGNORECASE)
    found: list[tuple[int, int, str]] = []
    for index, text in enumerate(request["texts"]):
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found.append((index, number, line))
                if len(found) >= request["most"]:
                    json.dump(found, sys.stdout)
                    return
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
