"""`wordlight`, and `python -m wordlight`, the same."""

import sys


def run() -> None:
    """Run the command and end the process with its exit code."""
    if "dream" in sys.argv[1:2]:
        # The process begins again, half a second that only a long run gets back.
        from wordlight.huge_pages import start_with_huge_pages

        start_with_huge_pages()
    from wordlight.cli import main

    sys.exit(main())


if __name__ == "__main__":
    run()
