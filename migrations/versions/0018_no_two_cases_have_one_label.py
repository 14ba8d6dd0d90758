"""case: labels in which no two cases read alike (docs/decisions/0069).

Step: migrate (the old release shows the new labels and finds pages by them; cases that it makes meanwhile keep labels of the
old form, so stop it first where texts in parameters look like numbers). Locks: of the rows that change, until the end. Rows
rewritten: the cases with a parameter, dtype or device whose text now stands in quotes, those with a device and no dtype, and
workloads named like labels; all cases are read. Back: the same rows get the labels that they had.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

ROWS_AT_ONCE = 5_000
PLAIN = re.compile(r"""[^,=\[\]{}"]+""")
OF_ANOTHER_TYPE = re.compile(r"true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Case(NamedTuple):
    """A case as it is stored."""

    id: int
    workload: str
    params: Mapping[str, Any]
    dtype: str | None
    device: str | None
    label: str


class Form(NamedTuple):
    """A label in parts: of each parameter, and what stands behind them."""

    params: Mapping[str, str]
    behind: list[str]
    in_brackets: bool


def upgrade() -> None:
    """Write the labels in which texts are told from what they look like."""
    _rewrite(_plain_form, _quoted_form)


def downgrade() -> None:
    """Write the labels without quotes."""
    _rewrite(_quoted_form, _plain_form)


def _rewrite(before: Callable[[Case], Form], after: Callable[[Case], Form]) -> None:
    connection = op.get_bind()
    for case in _cases():
        old, new = before(case), after(case)
        if old != new:
            label = _label(case.workload, new, _order(case, old))
            connection.exec_driver_sql('UPDATE "case" SET label = %s WHERE id = %s', (label, case.id))


def _cases() -> Iterator[Case]:
    connection, after = op.get_bind(), 0
    while True:
        rows = connection.exec_driver_sql(
            'SELECT id, workload, params, dtype, device, label FROM "case" WHERE id > %s ORDER BY id LIMIT %s',
            (after, ROWS_AT_ONCE),
        ).all()
        yield from (Case(*row) for row in rows)
        if len(rows) < ROWS_AT_ONCE:
            return
        after = rows[-1][0]


def _order(case: Case, form: Form) -> list[str]:
    """The parameters in the order of the label, which jsonb does not keep; in that of jsonb where the label does not tell."""
    place, order, left = len(case.workload) + 1, [], set(form.params)
    while left:
        fitting = [
            name for name in left if case.label.startswith((form.params[name] + ",", form.params[name] + "]"), place)
        ]
        if not fitting:
            return list(form.params)
        order.append(max(fitting, key=lambda name: len(form.params[name])))
        left.remove(order[-1])
        place += len(form.params[order[-1]]) + 1
    return order


def _label(workload: str, form: Form, order: list[str]) -> str:
    parts = [*(form.params[name] for name in order), *form.behind]
    return f"{workload}[{','.join(parts)}]" if form.in_brackets else workload


def _plain_form(case: Case) -> Form:
    params = {
        name: f"{name}={value if isinstance(value, str) else _json(value)}" for name, value in case.params.items()
    }
    behind = [part for part in (case.dtype, case.device) if part is not None]
    return Form(params, behind, bool(params or behind))


def _quoted_form(case: Case) -> Form:
    params = {name: f"{_text(name)}={_shown(value)}" for name, value in case.params.items()}
    behind = []
    if case.device is not None or (case.dtype is not None and not params):
        behind = ["" if part is None else _text(part) for part in (case.dtype, case.device)]
    elif case.dtype is not None:
        behind = [_text(case.dtype)]
    reads_like_a_label = case.workload.endswith("]") and ("=" in case.workload or "," in case.workload)
    return Form(params, behind, bool(params or behind or reads_like_a_label))


def _shown(value: Any) -> str:
    if isinstance(value, str) and OF_ANOTHER_TYPE.fullmatch(value) is None:
        return _text(value)
    return _json(value)


def _text(text: str) -> str:
    return text if PLAIN.fullmatch(text) else _json(text)


def _json(value: Any) -> str:
    return orjson.dumps(_canonical(value)).decode()


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
