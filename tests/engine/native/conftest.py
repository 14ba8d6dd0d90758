"""Where nothing is native here, only why it is not is tested; test_availability.py then says so in the report."""

from pathlib import Path

from pullback.backends.native import availability

if not availability.is_available():
    collect_ignore = [path.name for path in Path(__file__).parent.iterdir() if path.name != "test_availability.py"]
