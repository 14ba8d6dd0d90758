"""`make api`: records examples of every operation, and makes the client's calls and docs/api.md from the description.

`python -m tools.api --check` writes nothing and ends with 1 where a file is not what would be made.
"""

import sys
from pathlib import Path

from tools.api import client_writer, examples, guide

from pullback_service.application import create_service
from pullback_service.settings import Settings

ROOT = Path(__file__).parents[2]


def made(root: Path = ROOT) -> dict[Path, str]:
    """The files that are generated from the description of the API."""
    # The description is complete before there is any database.
    description = create_service(Settings(database_url="postgresql://nowhere/nothing")).openapi()
    return {
        root / "service/pullback_service/client/models.py": client_writer.models(description),
        root / "service/pullback_service/client/calls.py": client_writer.calls(description),
        root / "docs/api.md": guide.guide(description),
    }


def main(arguments: list[str]) -> int:
    """Write the files, or say which are out of date."""
    if "--check" in arguments:
        stale = [path for path, text in made().items() if not path.exists() or path.read_text() != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run `make api`")
        return 1 if stale else 0
    if "--keep-examples" not in arguments:
        examples.record(ROOT / "service/pullback_service/examples.json")
    for path, text in made().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
