"""`python -m anybatch` is `anybatch`."""

from anybatch.cli import main

main()
