"""python -m cutile."""

from cutile.cli.main import main

main()
