"""Requests of calls: the token, time limits, repetition where it is harmless, and errors of one kind.

A call that got no answer, or the answer to come back later, is repeated only where the API says that it may be
(`x-repeatable`): reading, and writes that are known by what they say or by their Idempotency-Key.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import httpx
import stamina
from pydantic import BaseModel, ValidationError

from pullback_service.client.answers import Answer, Content
from pullback_service.client.errors import ClientError, NoAnswerError, NotThisApiError, ProblemError

Body = bytes | str | Mapping[str, Any]
AnswerModel = TypeVar("AnswerModel", bound=Answer)

TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 5.0
ATTEMPTS = 5
LONGEST_WAIT_S = 20.0
LONG_POLL_MARGIN_S = 15.0

_IN_PATH = re.compile(r"{(\w+)}")
_BODIES: Final = ("statement", "request", "content")
_HEADERS: Final = {"idempotency_key": "Idempotency-Key", "lease": "Pullback-Lease"}
"""Arguments of methods that are no parameters of a query, by their names."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the API."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: BaseModel | Body | None = None
    repeatable: bool = False
    waits_s: float = 0.0
    """The time that the service may wait before it answers."""

    def request(self, http: httpx.Client) -> httpx.Request:
        """The request of this call."""
        content, media_type = _content(self.body)
        headers = {name: str(value) for name, value in self.headers.items() if value is not None}
        if media_type is not None:
            headers.setdefault("Content-Type", media_type)
        query = {name: _text(value) for name, value in self.query.items() if value is not None}
        timeout = http.timeout
        if self.waits_s:
            timeout = httpx.Timeout(self.waits_s + LONG_POLL_MARGIN_S, connect=CONNECT_TIMEOUT_S)
        return http.build_request(
            self.method, self.path, params=query or None, headers=headers, content=content, timeout=timeout
        )


class Sender:
    """Calls of one service, which wait for their answers. May be used from several threads."""

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
        transport: httpx.BaseTransport | None = None,
        trust_env: bool = True,
    ) -> None:
        self.server = server.rstrip("/")
        self._attempts = attempts
        headers = {"User-Agent": "pullback-client", "Accept": "application/json, */*"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))
        self._http = httpx.Client(
            base_url=self.server, headers=headers, timeout=timeout, transport=transport, trust_env=trust_env
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def use_token(self, token: str) -> None:
        """Show this token from now on."""
        self._http.headers["Authorization"] = f"Bearer {token}"

    def deliver(self, path: str, body: Body, *, headers: Mapping[str, str | None]) -> Mapping[str, Any]:
        """Post something that was kept for later with the address it goes to, as a spool keeps it."""
        return _object(self._send(Call("POST", path, headers=headers, body=body)))

    def _attempts_of(self, call: Call) -> int:
        return self._attempts if call.repeatable else 1

    def _no_answer(self, call: Call, error: httpx.TransportError) -> NoAnswerError:
        reason = str(error) or type(error).__name__
        return NoAnswerError(f"{self.server} does not answer {call.method} {call.path} ({reason})")

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.is_success:
            return response
        try:
            document = response.json()
        except ValueError:  # a proxy's page, or another program's
            called = f"{response.request.method} {response.request.url.path}"
            reason = " ".join(response.text.split())[:200] or response.reason_phrase
            document = {"detail": f"{self.server} answered {response.status_code} to {called} ({reason})"}
        if not isinstance(document, dict):
            document = {"detail": str(document)[:200]}
        wait = response.headers.get("Retry-After", "")
        raise ProblemError(response.status_code, document, retry_after_s=float(wait) if wait.isdigit() else None)

    def _model(self, model: type[AnswerModel], response: httpx.Response) -> AnswerModel:
        try:
            answer = model.model_validate_json(response.content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"]) or "the answer"
            raise NotThisApiError(
                f"{response.request.url} answered something else than {model.__name__} ({where}: {first['msg']}): "
                "is it a Pullback service, and of this version?"
            ) from error
        answer._status = response.status_code  # noqa: SLF001 - the model keeps it for us
        return answer

    def _send(self, call: Call) -> httpx.Response:
        for attempt in stamina.retry_context(
            on=_wait_for, attempts=self._attempts_of(call), timeout=None, wait_max=LONGEST_WAIT_S
        ):
            with attempt:
                try:
                    return self._checked(self._http.send(call.request(self._http)))
                except httpx.TransportError as error:
                    raise self._no_answer(call, error) from error
        raise AssertionError("stamina raises what the last attempt raised")

    def _ask(self, model: type[AnswerModel], *call: Any, **options: Any) -> AnswerModel:
        return self._model(model, self._send(call_of(*call, **options)))

    def _ask_or_none(self, model: type[AnswerModel], *call: Any, **options: Any) -> AnswerModel | None:
        response = self._send(call_of(*call, **options))
        return self._model(model, response) if response.content else None

    def _fetch(self, *call: Any, **options: Any) -> Content:
        return _content_of(self._send(call_of(*call, **options)))


def call_of(
    method: str, path: str, given: Mapping[str, Any], *, repeatable: bool = False, waits_s: float = 0.0
) -> Call:
    """The call of a method of the client, by the arguments that this was given."""
    rest = {name: value for name, value in given.items() if name != "self"}
    # Names may have slashes in them, which are part of the address.
    place = {name: quote(str(rest.pop(name))) for name in _IN_PATH.findall(path)}
    headers = {header: rest.pop(name) for name, header in _HEADERS.items() if name in rest}
    body = next((rest.pop(name) for name in _BODIES if name in rest), None)
    query = {name.removesuffix("_"): value for name, value in rest.items()}
    return Call(method, path.format(**place), query, headers, body, repeatable or method == "GET", waits_s)


def _object(response: httpx.Response) -> Mapping[str, Any]:
    try:
        result = response.json() if response.content else {}
    except ValueError:
        result = None
    if not isinstance(result, dict):
        raise NotThisApiError(f"{response.request.url} did not answer with a JSON object: is it a Pullback service?")
    return result


def _wait_for(error: Exception) -> bool | float:
    """The delay before another attempt, where one is due; the service's own delay if it names one."""
    if not isinstance(error, ClientError) or not error.is_transient:
        return False
    if isinstance(error, ProblemError) and error.retry_after_s is not None:
        return min(error.retry_after_s, LONGEST_WAIT_S)
    return True


def _content(body: BaseModel | Body | None) -> tuple[bytes | None, str | None]:
    if body is None:
        return None, None
    if isinstance(body, BaseModel):
        return body.model_dump_json(exclude_unset=True, by_alias=True).encode(), "application/json"
    if isinstance(body, Mapping):
        return json.dumps(dict(body), separators=(",", ":")).encode(), "application/json"
    return (body.encode() if isinstance(body, str) else body), "application/octet-stream"


def _content_of(response: httpx.Response) -> Content:
    return Content(
        response.content,
        response.headers.get("content-type", "").partition(";")[0],
        {name.lower(): value for name, value in response.headers.items()},
    )


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else value
