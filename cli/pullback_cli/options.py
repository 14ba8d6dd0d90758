"""Options that several commands have, each with one help text."""

from pathlib import Path
from typing import Annotated

import typer

from pullback_cli import completions

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]

TokenFile = Annotated[
    Path | None, typer.Option(envvar="PULLBACK_TOKEN_FILE", help="File with the token; or set PULLBACK_TOKEN.")
]

Clone = Annotated[Path | None, typer.Option(help="The project's clone; default: the one of this folder.")]
Cases = Annotated[
    list[str] | None,
    typer.Option(help="A workload, a case's name or a glob; may be repeated.", autocompletion=completions.workloads),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        help="A tier or peer; may be repeated; default: all that a workload declares, and for a NumPy form all tiers.",
        autocompletion=completions.variants,
    ),
]
ComparedVariants = Annotated[
    list[str] | None,
    typer.Option(
        help="A tier or peer; may be repeated; default: all that a workload declares, and for a NumPy form unfused and native.",
        autocompletion=completions.variants,
    ),
]
Device = Annotated[str, typer.Option(help="cpu, or cuda for a GPU (extra gpu).", autocompletion=completions.devices)]
