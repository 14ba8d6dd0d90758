"""`pullback agent`: measure jobs of a service on this machine."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pullback_cli.paths import DATA
from pullback_cli.usage_errors import RefusalError, needs


class IsolationLevel(StrEnum):
    """The levels of isolation of jobs from their agent."""

    NONE = "none"
    USER = "user"
    SANDBOX = "sandbox"


@needs("runner")
def agent(
    *,
    server: Annotated[str, typer.Option(envvar="PULLBACK_SERVER", help="Address of the service.")],
    repository: Annotated[
        Path | None,
        typer.Option(
            envvar="PULLBACK_REPOSITORY",
            help="Clone to use for projects whose repository the service does not name; default: the one of this folder.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REPOSITORY",
            envvar="PULLBACK_ALLOW",
            help="Address, or folder of a clone, of a repository whose commits may be built here; repeatable.",
        ),
    ] = None,
    isolation: Annotated[
        IsolationLevel | None,
        typer.Option(
            envvar="PULLBACK_ISOLATION",
            help="Jobs run as the agent's user (none), as --build-user (user), or in a sandbox of bubblewrap without network, which "
            "shows them only their own files. Default: user if --build-user is given, else none.",
        ),
    ] = None,
    build_network: Annotated[
        bool,
        typer.Option(
            "--build-network",
            help="Builds in the sandbox can reach the package index configured for pip and uv on this machine, through a proxy of the "
            "agent; measured code has no network.",
        ),
    ] = False,
    build_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            envvar="PULLBACK_BUILD_HOST",
            help="Host that builds in the sandbox can reach through the same proxy, on ports 80 and 443 unless one is given; repeatable.",
        ),
    ] = None,
    build_gib: Annotated[
        float, typer.Option(min=0, help="Limit on network traffic of the builds of one job, in GiB.")
    ] = 8.0,
    build_user: Annotated[
        str | None,
        typer.Option(
            metavar="USER",
            envvar="PULLBACK_BUILD_USER",
            help="Dedicated user of this machine who builds and measures commits; for agents running as root. "
            "Default: the agent's own.",
        ),
    ] = None,
    danger_unsandboxed: Annotated[
        bool,
        typer.Option(
            "--danger-unsandboxed",
            help="Run commits of forks without a sandbox too, where an administrator lets this machine run them. Logged at every start "
            "and shown on the fleet page.",
        ),
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name of the agent; default: the host's.")] = None,
    data: Annotated[
        Path, typer.Option(envvar="PULLBACK_AGENT_DATA", help="Folder for job files and the spool of unsent reports.")
    ] = DATA / "agent",
    token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="PULLBACK_TOKEN_FILE", help="File with a token, or with a code of `pullback token enroll`."
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(envvar="PULLBACK_LABELS", help="Label name=value that jobs can require; repeatable."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Run at most one job, then exit.")] = False,
    least_free_gib: Annotated[
        float, typer.Option(min=0, help="Claim no job while less disk space than this is free.")
    ] = 5.0,
) -> None:
    """Measure on this machine for a service: claim jobs, build their commits, send reports.

    A build runs code of the repository: only repositories named by --repository and --allow are built. With --build-user or
    --isolation sandbox it can read neither the agent's token nor its unsent reports.

    SIGTERM finishes the current job; Ctrl-C, or a second SIGTERM, returns it to the queue at once.

    Examples:
    pullback agent --server http://127.0.0.1:8000

    pullback agent --server https://pullback.example --allow https://git.example/group/demo --token-file token

    pullback agent --server https://pullback.example --repository /srv/clone --label gpu=h200

    pullback agent --server https://pullback.example --allow https://git.example/group/demo --build-user pullback-build

    pullback agent --server https://pullback.example --allow https://git.example/group/demo --isolation sandbox
    """
    from pullback_cli.services import address_of
    from pullback_runners.agent.daemon import AgentOptions, run_agent
    from pullback_runners.agent.disk_space import GIB
    from pullback_runners.agent.logs import log_plainly
    from pullback_runners.projects.packages import hosts_of_index
    from pullback_runners.sandbox.proxy import BuildNetwork

    address = address_of(server)
    level = isolation or (IsolationLevel.NONE if build_user is None else IsolationLevel.USER)
    if level == "none" and build_user is not None:
        raise RefusalError(f"--isolation none: jobs run as the agent's user; leave out --build-user {build_user}")
    for option in ["--build-network"] * build_network + ["--build-host"] * bool(build_host):
        if level != "sandbox":
            raise RefusalError(f"{option}: only a sandbox has no network; leave it out, or add --isolation sandbox")
    hosts = [*(build_host or ()), *(hosts_of_index() if build_network else ())]
    if build_network and not hosts:
        raise RefusalError(
            "--build-network: neither pip nor uv is configured with a package index on this machine (`pip config list`); name its hosts "
            "with --build-host"
        )
    if danger_unsandboxed and level == "sandbox":
        raise RefusalError("--danger-unsandboxed: this agent has a sandbox; leave one of the two out")
    log_plainly()
    run_agent(
        AgentOptions(
            server=address,
            repository=_clone(repository),
            allowed=tuple(allow or ()),
            data=data.resolve(),
            name=name,
            token=_secret(token_file),
            token_file=token_file,
            isolation=level.value,
            builds=BuildNetwork(hosts, int(build_gib * GIB)) if hosts else None,
            danger_unsandboxed=danger_unsandboxed,
            build_user=build_user,
            labels=dict(_pair(text) for text in label or ()),
            once=once,
            least_free_bytes=least_free_gib * GIB,
        )
    )


def _clone(named: Path | None) -> Path | None:
    from pullback_runners.git import is_clone

    if named is None:
        return Path.cwd() if is_clone(Path.cwd()) else None
    if not is_clone(named):
        raise RefusalError(f"--repository {named}: no git repository with commits; give a clone of the project")
    return named.resolve()


def _secret(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise RefusalError(
            f"the token file {file} cannot be read ({error.strerror}); name a file with the secret"
        ) from error
    except UnicodeDecodeError as error:
        raise RefusalError(f"the token file {file} is not text; put the service's secret into it") from error
    if not secret:
        raise RefusalError(f"the token file {file} is empty; put the service's secret into it")
    return secret


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise RefusalError(f"--label {text!r} is not of the form name=value, for example gpu=h200")
    return name, value
