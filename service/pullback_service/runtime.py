"""The objects of a running application, found by their types. This module knows none of them.

The lifespan makes them (`application.py`); the folder that defines a type names its dependency (`KnownJobListener` in `jobs/dependencies.py`).
"""

from typing import Any, TypeVar

from fastapi import Depends, FastAPI, Request

Instance = TypeVar("Instance")


class Runtime:
    """One running application: one object of each type."""

    def __init__(self, *objects: object) -> None:
        self._objects = {type(instance): instance for instance in objects}
        assert len(self._objects) == len(objects)  # noqa: S101 - the second of a type would hide the first

    def get(self, kind: type[Instance]) -> Instance:
        """The object of a type."""
        instance = self._objects[kind]
        assert isinstance(instance, kind)  # noqa: S101 - it is kept under its type
        return instance


def runtime_of(app: FastAPI) -> Runtime:
    """The runtime of an application that has started."""
    runtime = app.state.runtime
    assert isinstance(runtime, Runtime)  # noqa: S101 - the lifespan puts it there
    return runtime


def instance_of(kind: type[Instance]) -> Any:
    """The dependency of an endpoint that is the application's object of a type.

    It asks the request and not another dependency: FastAPI solves a dependency's own dependencies each time that it is named,
    0.04 ms for every one, although it then finds what they answered before.
    """

    async def instance(request: Request) -> Instance:
        return runtime_of(request.app).get(kind)

    return Depends(instance)
