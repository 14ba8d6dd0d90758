"""The command `pullback`: a table of subcommands, each of which imports its part when it runs."""

import typer

from pullback_cli.run import run

app = typer.Typer(
    name="pullback",
    help="Continuous benchmarking for gradients: measure, keep and watch the memory and speed of backward passes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Continuous benchmarking for gradients."""


app.command()(run)


def main() -> None:
    """Run the command line."""
    app()
