"""One command: Horai, a worker and the story. `python -m examples.exhibition`."""

from ..stage import perform

if __name__ == "__main__":
    perform("examples.exhibition")
