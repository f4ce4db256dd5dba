"""The command line, `tamis`."""

import argparse
import sys
from collections.abc import Sequence

import tamis


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the value is the exit code."""
    parser = argparse.ArgumentParser(prog="tamis", description=tamis.__doc__)
    parser.add_argument("--version", action="version", version=f"tamis {tamis.__version__}")
    parser.parse_args(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
