"""`up` itself: the story from an empty folder to measured ratios, and the loop that keeps it true."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from types import FrameType

from rich.console import Console

from pullback_cli.serve import listen
from pullback_cli.supervision.display import Display
from pullback_cli.supervision.first_jobs import MeasuredCheckout
from pullback_cli.supervision.headline import headline
from pullback_cli.supervision.plan import UpOptions, plan_processes
from pullback_cli.supervision.repository import store_repository
from pullback_cli.supervision.service_api import ServiceApi
from pullback_cli.supervision.state_file import UpState, forget_state, only_up_on, read_state, write_state
from pullback_cli.supervision.supervisor import OF_THE_WORKER, CrashLoopError, Supervisor
from pullback_cli.supervision.up_database import UpDatabase
from pullback_cli.usage_errors import RefusalError, note
from pullback_runners.agent.process_mark import ProcessMark, end_trees
from pullback_service import migrations
from pullback_service.client import ClientError
from pullback_service.settings import Settings

READY_TIMEOUT_S = 60.0
_LOOK_S = 0.5
_QUIET_LOOKS, _QUIET_CPU_S = 3, 0.1
"""The start is over once the processes have used less than this in so many seconds, each."""
_QUIET_TIMEOUT_S = 20.0


class StopUp(BaseException):
    """Raised in the main thread by the first signal."""


class _UpCommand:
    """One `up`, whose parts know of each other only what they are handed here."""

    def __init__(
        self, options: UpOptions, settings: Settings, display: Display, suite: str, obey_signals: Callable[[], None]
    ) -> None:
        self._options = options
        self._obey_signals = obey_signals
        self._suite = suite
        self._display = display
        self._settings = settings
        self._database = UpDatabase(options, self._settings, display.say)
        self._state = UpState(ProcessMark.of(os.getpid()), options.url, self._database.is_embedded)

    def run(self, listening_fd: int) -> None:
        """Start everything, stay until stopped, leave nothing behind."""
        data = self._options.data
        (data / ".gitignore").write_text("*\n", encoding="ascii")  # it may lie in the repository that is measured
        self._end_leftovers()
        supervisor = Supervisor(self._display.say, self._remember)
        try:
            write_state(data, self._state)
            owner = self._database.start()
            migrations.upgrade(owner)
            if self._options.project is not None and self._database.is_embedded:
                store_repository(owner, self._options.project)
            url = self._database.service_url()
            notifying = {name: os.environ[name] for name in OF_THE_WORKER if name in os.environ}
            supervisor.start(
                plan_processes(self._options, database_url=url, listening_fd=listening_fd, notifying=notifying)
            )
            with ServiceApi(self._options.url, token=self._settings.token()) as api:
                self._wait_until_ready(api, supervisor)
                self._state = replace(self._state, ready=True)
                write_state(data, self._state)
                self._display.say(f"Pullback is ready: {self._options.url}   (Ctrl-C stops everything; data in {data})")
                self._stay(api, supervisor)
        finally:
            if self._state.children:
                self._display.say("stopping")
            supervisor.stop()
            self._database.stop()
            forget_state(data)

    def _stay(self, api: ServiceApi, supervisor: Supervisor) -> None:
        checkout = None
        if self._options.project is not None:
            self._wait_until_quiet(supervisor)
            checkout = MeasuredCheckout(api, self._options.project, self._suite)
            if checkout.remark:
                self._display.say(f"note: {checkout.remark}")
        while True:
            self._obey_signals()
            supervisor.check()
            self._database.check()
            if checkout is not None:
                self._follow(checkout, api)
            time.sleep(_LOOK_S)

    def _follow(self, checkout: MeasuredCheckout, api: ServiceApi) -> None:
        try:
            new = checkout.poll()
        except ClientError as error:
            if not error.is_transient:
                raise
            return  # the API is being started again, which the supervisor has said
        if new is not None:
            self._display.say(f"new commit {new['sha'][:10]} {new['title']}: queued")
        self._display.show(checkout.jobs)
        for job in checkout.take_finished():
            self._display.show_result(headline(api, job, self._options.url))

    def _wait_until_quiet(self, supervisor: Supervisor) -> None:
        """Wait until the start of the service is over, so that it is not measured with the first commit."""
        quiet, used_s = 0, supervisor.used_s()
        deadline = time.monotonic() + _QUIET_TIMEOUT_S
        while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
            self._obey_signals()
            supervisor.check()
            time.sleep(1)
            before, used_s = used_s, supervisor.used_s()
            quiet = quiet + 1 if used_s - before < _QUIET_CPU_S else 0

    def _wait_until_ready(self, api: ServiceApi, supervisor: Supervisor) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not api.is_ready():
            self._obey_signals()
            supervisor.check(most_deaths=1)  # what cannot even start will not start the second time
            if time.monotonic() > deadline:
                raise RefusalError(
                    f"the service was not ready after {READY_TIMEOUT_S:.0f} s: its reasons are in logs/api.log"
                )
            time.sleep(0.1)

    def _remember(self, name: str, mark: ProcessMark) -> None:
        self._state = self._state.with_child(name, mark)
        write_state(self._options.data, self._state)

    def _end_leftovers(self) -> None:
        """End children of an `up` that was killed, where its death did not end them already."""
        left = read_state(self._options.data)
        if left is not None and (ended := end_trees(left.children.values())):
            self._display.say(f"ended {len(ended)} processes that an earlier `pullback up` had left")


def run_up(options: UpOptions, settings: Settings, *, suite: str) -> int:
    """Run until Ctrl-C or SIGTERM; returns the exit code."""
    obey_signals = _stop_on_signals()
    # The socket is opened before anything is started: a port in use must not leave a database behind.
    with only_up_on(options.data), closing(listen(options.host, options.port)) as listening:
        here = replace(options, port=listening.getsockname()[1])
        with Display(Console(highlight=False)) as display:
            try:
                _UpCommand(here, settings, display, suite, obey_signals).run(listening.fileno())
            except StopUp:
                return 0
            except CrashLoopError as error:
                note(str(error))
                return 1
    return 0


def _stop_on_signals() -> Callable[[], None]:
    """Let the first signal raise StopUp, and return what raises it where that was lost.

    Python drops what is raised while it runs a finalizer or the callback of a weak reference.
    """
    stopping: list[int] = []

    def received(number: int, _frame: FrameType | None) -> None:
        if not stopping:  # a second Ctrl-C must not interrupt the stopping
            stopping.append(number)
            raise StopUp

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, received)

    def obey() -> None:
        if stopping:
            raise StopUp

    return obey
