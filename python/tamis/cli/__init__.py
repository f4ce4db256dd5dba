"""The command line, `tamis`: a module for each command."""

from tamis.cli.commands import main

__all__ = ["main"]
