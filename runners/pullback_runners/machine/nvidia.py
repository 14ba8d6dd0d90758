"""Facts from NVIDIA's driver, by its own tool: asking it needs no library, and starts nothing on a GPU."""

import shutil
import subprocess


def query_driver(what: str) -> list[list[str]] | None:
    """The answer to a query of `nvidia-smi` as rows of fields; None where there is none, or it does not answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        answer = subprocess.run(  # noqa: S603 - our own arguments
            [tool, f"--query-{what}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return [[field.strip() for field in line.split(",")] for line in answer.stdout.splitlines() if line.strip()]
