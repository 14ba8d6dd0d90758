"""The client of the API, typed.

    with Client("https://pullback.example", token=token) as pullback:
        receipt = pullback.upload_report(file.read_bytes(), project="demo", commit=sha, branch="main", machine="ci")
        for series in every(pullback.list_series, project="demo", metric="time"):
            ...

A method for every operation of the API, under its name (`docs/api.md`). It needs httpx, pydantic and stamina and nothing
else of the service, so that agents use it without FastAPI. `calls.py` and `models.py` are made by `make api`.
"""

from pullback_service.client import models
from pullback_service.client.answers import Answer, Content, Page, every
from pullback_service.client.calls import Client
from pullback_service.client.errors import ClientError, NoAnswerError, NotThisApiError, ProblemError

__all__ = [
    "Answer",
    "Client",
    "ClientError",
    "Content",
    "NoAnswerError",
    "NotThisApiError",
    "Page",
    "ProblemError",
    "every",
    "models",
]
