from pullback_dashboards.markdown_pages import markdown_of


def told(main):
    return markdown_of(
        f"<html><body><nav>elsewhere</nav><main>{main}</main></body></html>", "https://here.example/page?n=1"
    )


def test_headings_sentences_lists_and_commands_are_kept():
    html = """<div class="head"><h1>A <bdi>page</bdi></h1><span class="save"><a href="/x.csv">CSV</a></span></div>
    <p class="lede"><strong>fused</strong> 1.7× faster, <code>n=3</code></p>
    <div class="facts"><span>at <a class="sha" href="/c/1">abc</a></span><span>on <b>lab</b></span></div>
    <ul><li><span class="mark" aria-hidden="true">▲</span> worse</li><li>same</li></ul>
    <pre><code>git switch main
pullback run</code></pre>"""
    assert told(html).split("\n\n") == [
        "# A page",
        "**fused** 1.7× faster, `n=3`",
        "at [abc](https://here.example/c/1) · on **lab**",
        "- ▲ worse\n- same",
        "```\ngit switch main\npullback run\n```\n",
    ]


def test_a_table_keeps_its_rows_spans_and_second_lines():
    html = """<table><thead><tr><th rowspan="2">commit</th><th scope="colgroup" colspan="2">time</th></tr>
    <tr><th class="number">unfused</th><th class="number">fused</th></tr></thead>
    <tbody><tr><th><a href="/c">abc</a><span class="sub">Cut | join</span></th><td class="number">3 ms</td>
    <td class="number"><span class="mark">▼</span> 0.53×<span class="sub">0.52–0.54</span></td></tr>
    <tr><th>def</th><td colspan="2">✕ failed</td></tr></tbody></table>"""
    assert told(html).splitlines() == [
        "| commit | time: unfused | time: fused |",
        "| --- | ---: | ---: |",
        r"| [abc](https://here.example/c) · Cut \| join | 3 ms | ▼ 0.53× · 0.52–0.54 |",
        "| def | ✕ failed |  |",
    ]


def test_what_spans_rows_stands_in_each_of_them():
    html = """<table><thead><tr><th>since</th><th>fact</th></tr></thead><tbody>
    <tr><th rowspan="2">May</th><td>kernel</td></tr><tr><td>numpy</td></tr></tbody></table>"""
    assert told(html).splitlines()[2:] == ["| May | kernel |", "| May | numpy |"]


def test_controls_drawings_and_what_is_closed_are_left_out():
    html = """<form><label>name <input></label><button>Go</button></form><nav>pages</nav>
    <svg><text>drawn</text></svg><span class="hidden">for ears</span>
    <details><summary>3 facts</summary><p>inside</p></details><details open><summary>open</summary><p>seen</p></details>"""
    assert told(html) == "3 facts\n\nopen\n\nseen\n"


def test_what_people_wrote_stays_what_they_wrote():
    html = "<p>- *not* a list &lt;b&gt;</p><p>1. no list</p><p><a href='/a(b)'>[x](y)</a></p>"
    assert told(html).split("\n\n") == [
        r"\- \*not\* a list \<b\>",
        r"1\. no list",
        "[\\[x\\](y)](https://here.example/a%28b%29)\n",
    ]


def test_links_within_the_page_lead_to_the_page():
    html = "<p><a href='#case-1'>the case</a> <a href='?n=2'>more</a></p>"
    assert told(html) == "[the case](https://here.example/page?n=1#case-1) [more](https://here.example/page?n=2)\n"


def test_instants_are_told_as_such():
    html = '<p>done <time datetime="2026-03-10T13:05:00Z">3 h ago</time></p>'
    assert told(html) == "done 2026-03-10 13:05 UTC\n"
