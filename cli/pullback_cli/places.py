"""Where things of this machine lie, seen from a folder the user stands in."""

from pathlib import Path

DATA = Path(".pullback")


def default_repository() -> Path:
    """The folder whose engine is measured: the nearest one upwards with an engine in it, else the installed package."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "engine" / "pullback" / "__init__.py").is_file():
            return folder
    import pullback

    return Path(str(pullback.__file__)).parent.parent
