"""`python -m unseam` is `unseam`."""

from unseam.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
