"""Conditional requests: responses with a tag that clients revalidate with `If-None-Match`.

The tag is a digest of the content. It cannot miss a change, whoever made it and in whichever order transactions ended
(the newest id would: ids are taken before they can be seen), and two replicas give the same tag. What it saves is the
sending and the reading; the answer itself is made anew, which every query here does in a few milliseconds.
"""

from hashlib import blake2b
from typing import Annotated, Any

import orjson
from fastapi import Depends, Header, Request, Response
from pydantic import BaseModel

from pullback_service.caller import Caller

NOT_MODIFIED = 304
TAG_BYTES = 16

# Whoever keeps an answer asks each time whether it still holds: a project may get results, or stop being public, at any
# moment. Only what anybody may read is kept by caches that serve several people.
FOR_ANYBODY = "public, no-cache"
FOR_THE_CALLER = "private, no-cache"
VARY = "Accept, Authorization, Cookie"

UNCHANGED: dict[int | str, dict[str, Any]] = {
    NOT_MODIFIED: {"description": "Nothing has changed since the answer with the tag in `If-None-Match`"}
}


class ConditionalResponses:
    """The form of an answer. `known` are the tags of the answers that the client has."""

    def __init__(self, caller: Caller, known: frozenset[str]) -> None:
        self.headers = {"Cache-Control": FOR_ANYBODY if caller.anonymous else FOR_THE_CALLER, "Vary": VARY}
        self._known = known

    def __call__(self, content: BaseModel) -> Response:
        """A document as JSON with its tag, or word that the client has it already."""
        return self.written(content.model_dump_json().encode())

    def plain(self, content: object) -> Response:
        """The same of plain values: for pages of which models would cost more than everything else about them.

        That they are what the endpoint's declared model says is held by tests of the endpoint.
        """
        return self.written(orjson.dumps(content, option=orjson.OPT_UTC_Z))

    def written(self, body: bytes) -> Response:
        """The same of JSON that is written already."""
        tag = f'"{blake2b(body, digest_size=TAG_BYTES).hexdigest()}"'
        headers = {**self.headers, "ETag": f"W/{tag}"}
        if tag in self._known or "*" in self._known:
            return Response(status_code=NOT_MODIFIED, headers=headers)
        return Response(body, media_type="application/json", headers=headers)


def _tags(header: str | None) -> frozenset[str]:
    """The tags of the header, compared weakly (RFC 9110, 8.8.3.2): proxies that compress mark them as weak."""
    return frozenset(tag.strip().removeprefix("W/") for tag in (header or "").split(","))


async def _answering(
    request: Request,
    if_none_match: Annotated[
        str | None, Header(max_length=2_000, description="`ETag` of the answer that the client has.")
    ] = None,
) -> ConditionalResponses:
    caller = request.state.caller
    assert isinstance(caller, Caller)  # noqa: S101 - the application's first dependency puts it there
    return ConditionalResponses(caller, _tags(if_none_match))


KnownAnswering = Annotated[ConditionalResponses, Depends(_answering)]
