"""GradBench's protocol: a message a line, an answer a line, the same id; strict JSON both ways.

Messages are of kind start, define, evaluate and analysis. What a line holds that is no message is answered, too, with a
sentence: the other side waits for a line, and a tool that ends is a result that nobody can tell from a crash.
"""

import json
from collections.abc import Callable
from typing import Any, BinaryIO

Message = dict[str, Any]
Answer = dict[str, Any]


def converse(lines: BinaryIO, answers: BinaryIO, respond: Callable[[Message], Answer]) -> None:
    """Answer line by line until there are no more, or until nobody reads the answers."""
    try:
        while line := lines.readline():  # one line of any length; a reader that looks ahead would wait for the next
            if line.strip():
                _write(answers, encoded(_answer(line, respond)))
    except BrokenPipeError:
        return


def _answer(line: bytes, respond: Callable[[Message], Answer]) -> Answer:
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return {"id": None, "success": False, "error": f"this line is not JSON ({error}): {_shortened(line)}"}
    if not isinstance(message, dict) or "id" not in message or "kind" not in message:
        number = message.get("id") if isinstance(message, dict) else None
        return {"id": number, "success": False, "error": f"a message has an id and a kind: {_shortened(line)}"}
    return respond(message)


def encoded(answer: Answer) -> bytes:
    """An answer as its line; numbers that JSON does not have become a failure that names them."""
    try:
        return json.dumps(answer, allow_nan=False).encode() + b"\n"
    except (ValueError, RecursionError):
        sentence = "the output holds NaN or infinity, which JSON cannot represent; the input may be outside the function's domain"
        number = answer["id"] if isinstance(answer["id"], int | str) else None
        return json.dumps({"id": number, "success": False, "error": sentence}).encode() + b"\n"


def _write(answers: BinaryIO, line: bytes) -> None:
    """Write all of a line: without a buffer, a pipe takes as much at a time as it has room for."""
    rest = memoryview(line)
    while rest:
        rest = rest[answers.write(rest) :]


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _shortened(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return text if len(text) <= 80 else f"{text[:80]}…"
