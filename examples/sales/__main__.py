"""One command: Horai, a worker and the story. `python -m examples.sales`."""

from ..stage import perform

if __name__ == "__main__":
    perform("examples.sales")
