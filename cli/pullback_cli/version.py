"""`pullback version`: which releases work together here."""

import importlib.metadata
import platform

import typer

_SHOWN = ("numpy", "llvmlite", "pyperf", "fastapi", "sqlalchemy", "plotly")


def version() -> None:
    """Print the versions of Pullback, of Python and of its dependencies.

    Example: `pullback version`
    """
    typer.echo(release())
    typer.echo(f"python {platform.python_version()} ({platform.platform()})")
    for name in _SHOWN:
        typer.echo(f"{name} {_installed(name)}")


def release() -> str:
    """The line that `pullback --version` prints."""
    return f"pullback {importlib.metadata.version('pullback')}"


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
