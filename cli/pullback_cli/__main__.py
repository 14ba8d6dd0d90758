"""`python -m pullback_cli` is `pullback`; the supervisor starts its children this way, with its own interpreter."""

from pullback_cli.main import main

main()
