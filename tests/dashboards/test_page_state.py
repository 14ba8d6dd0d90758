from starlette.requests import Request

from pullback_dashboards.page_state import Address


def address(query):
    return Address("/p", Request({"type": "http", "query_string": query.encode(), "headers": []}))


def test_another_answer_begins_at_its_beginning():
    here = address("metric=time&start=100&open=3")
    assert here.replaced("metric", "bytes") == "/p?metric=bytes"
    assert here.added("metric", "bytes") == "/p?metric=time&metric=bytes"
    assert here.dropped("metric", "time") == "/p"
    assert here.replaced("open", "4") == "/p?metric=time&start=100&open=4"
    assert here.replaced("open", None) == "/p?metric=time&start=100"


def test_empty_fields_of_a_form_say_nothing_but_an_empty_split_does():
    assert address("base=&split=&head=main").pairs == (("split", ""), ("head", "main"))


def test_several_names_change_at_once():
    assert address("a=1&b=2&c=3").with_all({"a": "9", "b": None}) == "/p?c=3&a=9"
    assert address("a=1&b=2&c=3").only(("b",)) == "/p?b=2"
