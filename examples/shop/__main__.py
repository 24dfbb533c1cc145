"""One command: Horai, a worker, the service and the story. `python -m examples.shop`."""

from ..stage import perform

if __name__ == "__main__":
    perform("examples.shop")
