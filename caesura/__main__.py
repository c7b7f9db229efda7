"""Runs the command line as ``python -m caesura``."""

from caesura.cli import main

if __name__ == "__main__":
    main()
