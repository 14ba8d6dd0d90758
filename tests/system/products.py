"""The commands a person would type, and waiting for what they do."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress

import psutil

SUITE = "trial:poly9_broadcast*"  # one case, a few seconds
COMMAND = [sys.executable, "-P", "-m", "pullback_cli"]


def until(condition, timeout_s=120, what="it"):
    """Wait for something to become true and return it.

    The longer it takes, the less often it is looked at: a look takes 10 to 30 ms of the processors that everybody waits for.
    """
    began = time.monotonic()
    while not (found := condition()):
        waited = time.monotonic() - began
        assert waited < timeout_s, f"waited {timeout_s} s for {what}"
        time.sleep(min(0.1 + waited / 10, 0.4))
    return found


class Product:
    """One data folder, and the commands a person would type about it."""

    def __init__(self, folder, repository, environment=None, user=None):
        self.data = folder / "data"
        self.home = folder / "home"
        self.home.mkdir()
        self.repository = repository
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PULLBACK_", "DATABASE_URL"))},
            "HOME": str(self.home),  # every process of ours inherits it, so that none can hide
            **(environment or {}),
        }
        self._user = user

    def run(self, *arguments, cwd=None, environment=None, **options):
        """Run a command to its end."""
        return subprocess.run(
            [*COMMAND, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=self._environment | (environment or {}),
            cwd=cwd or self.home,
            user=self._user,
            group=self._user,
            **options,
        )

    def start(self, *arguments, log, environment=None):
        """Start a command and leave it running."""
        with log.open("ab") as output:
            return subprocess.Popen(
                [*COMMAND, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment | (environment or {}),
                cwd=self.home,
            )

    def up_arguments(self, *more):
        """Return `up` on this folder and a free port."""
        return [
            "up",
            "--data",
            str(self.data),
            "--port",
            "0",
            "--repository",
            str(self.repository),
            "--suite",
            SUITE,
            *more,
        ]

    def up(self, *more):
        """Start everything in the background."""
        done = self.run(*self.up_arguments("--detach", *more))
        assert done.returncode == 0, done.stderr
        return done

    def status(self):
        """Return what `status` says."""
        return json.loads(self.run("status", "--data", str(self.data), "--json").stdout)

    def measuring(self):
        """The processes that measure."""
        return self.processes("pullback_runners.agent.measurer")

    def down(self):
        """Stop everything."""
        return self.run("down", "--data", str(self.data))

    def processes(self, module=""):
        """Every process that belongs to this product, by the home folder it inherited or the data it names.

        Those of one module only, if it is named: most of the machine's processes then need no second look.
        """
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                command = process.cmdline()
                if module and module not in command:
                    continue
                named = any(str(self.data) in argument for argument in command)
                if process.pid != os.getpid() and (named or process.environ().get("HOME") == str(self.home)):
                    found.append(process)
        return [process for process in found if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
