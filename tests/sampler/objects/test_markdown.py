"""Reading texts in Markdown, measuring them, and the HTML that is shown of them."""

import io
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import sampler

RICH = """# Tea

Boil *half a litre*, then **wait**:

1. First
2. Second
   - nested

| water | tea |
|---|---:|
| 0.5 l | 6 g |

```python
print("tea")
steep(180)
```

See [the guide](https://example.org/tea) and ~~coffee~~.
"""
HOSTILE = {
    "a script": "<script>alert(1)</script>",
    "a handler": '<img src=x onerror="alert(1)">',
    "a handler in a line": 'words <b onmouseover="alert(1)">here</b>',
    "an address that runs": "[press](javascript:alert(1))",
    "one in capitals with a tab": "[press](JaVa\tScRiPt:alert(1))",
    "one in entities": "[press](&#106;avascript:alert(1))",
    "an address with marks": '[press](https://a.example/" onclick="alert(1))',
    "a title with marks": '[press](https://a.example "\\" onclick=\\"alert(1)")',
    "an autolink": "<javascript:alert(1)>",
    "a reference": "[press][1]\n\n[1]: javascript:alert(1)",
    "data that is a page": "[press](data:text/html;base64,PHNjcmlwdD4=)",
    "a picture of another host": "![seen](https://spy.example/pixel.png)",
    "a picture in a script": '![a"onerror="alert(1)](x)',
    "a vector picture": "![](data:image/svg+xml;base64,PHN2Zz4=)",
    "a style": '<style>@import "https://spy.example/x.css";</style>',
    "a frame": '<iframe src="https://spy.example"></iframe>',
    "a form": '<form action="https://spy.example"><button>Press</button></form>',
    "a base": '<base href="https://spy.example/">',
    "a comment": "<!-- --><script>alert(1)</script>",
    "code that ends itself": "```\n</code></pre><script>alert(1)</script>\n```",
    "a language of code": '```"><script>alert(1)</script>\nx\n```',
    "a picture's data in capitals": "[press](DATA:image/png;base64,AAAA)",
    "tags in a formula": r"$\text{<script>alert(1)</script>}\text{<img src=x onerror=alert(1)>}$",
    "commands of a formula": r"$\href{javascript:alert(1)}{x}$ $\class{a}{x}$ $\style{color:red}{x}$ $\color{red}{x}$",
    "a formula that ends itself": "$x</math><script>alert(1)</script>$",
    "a plain tag with a handler": '<sub onclick="alert(1)">x</sub> <br onload=alert(1)>',
    "a cell": "| a |\n|---|\n| <script>alert(1)</script> |",
}
ALLOWED = {
    *("blockquote", "br", "code", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul", "sub", "sup", "math", "semantics", "annotation"),
    *("mrow", "mi", "mn", "mo", "mtext"),
}


class Tags(HTMLParser):
    """All tags of a piece of HTML, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_headings_lists_tables_and_code_are_shown():
    html = sampler.object_html(RICH)
    for part in (
        "<h2>Tea</h2>",
        "<em>half a litre</em>",
        "<strong>wait</strong>",
        "<li>Second\n<ul>\n<li>nested</li>",
        '<td class="end">6 g</td>',
        '<pre><code>print("tea")\nsteep(180)\n</code></pre>',
        "<s>coffee</s>",
    ):
        assert part in html
    assert "<h1" not in html


def test_what_somebody_says_is_shown_though_it_looks_like_the_address_of_a_link():
    html = sampler.object_html("[Bob]: Yes.\n\n[^1]: ibid\n\nSee [it][1].\n\n[1]: https://e.org\n[2]:\n  /a")
    link = '<span class="link" title="https://e.org">it</span>'
    assert html == f"<p>[Bob]: Yes.</p>\n<p>[^1]: ibid</p>\n<p>See {link}.</p>\n"


def test_a_link_is_its_words_and_a_picture_its_description():
    html = sampler.object_html("[the guide](https://example.org/tea) ![a red <b>cup</b>](https://example.org/cup.png)")
    assert html.strip() == (
        '<p><span class="link" title="https://example.org/tea">the guide</span> '
        '<span class="picture">a red &lt;b&gt;cup&lt;/b&gt;</span></p>'
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    {
        r"\(a_1 * b_2\) and $c * d$": r"(<math>.*>(a_1 \* b_2|c \* d)</annotation></semantics></math>.*){2}",
        r"\[ \{1, 2\} \\ x \]": r'<math display="block">.*>\{</mo>.*\\\{1, 2\\\} \\\\ x ',
        "$$\na\n= b\n- c\n$$": r'^<p><math display="block">(?!.*<(h2|li))',
        "- one\n  $$x$$\n- two": r'<li>one.*<math display="block">.*</li>.*<li>two',
        r"$5 and $6, or \$7": r"^<p>\$5 and \$6, or \$7</p>",
        r"$\unknown{*a*}$ \(\def\a{x}\a\)": r"^<p>\$\\unknown\{\*a\*\}\$ \\\(\\def\\a\{x\}\\a\\\)</p>",
        f"${'x' * 2001}$": r"^<p>\$x{2001}\$</p>",
        f"${'x' * 2000}$": "^<p><math>",
        r"$a\hspace{9999cm}b$": r"<mspace></mspace>",
        "`$a$`": r"<code>\$a\$</code>",
        "H<sub>2</sub>O<br>x<SUP>2</SUP>": "^<p>H<sub>2</sub>O<br>\nx<sup>2</sup></p>",
        "one\ntwo": "^<p>one<br>\ntwo</p>",
    }.items(),
)
def test_formulas_line_ends_and_plain_tags_are_shown_and_what_is_no_formula_as_it_is_written(text, shown):
    assert re.search(shown, sampler.object_html(text).strip(), re.DOTALL)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_hostile_runs_loads_or_leads_away(text):
    for tag, attributes in Tags(sampler.object_html(text)).found:
        assert tag in ALLOWED
        assert attributes.keys() <= {"class", "title", "start", "encoding", "stretchy", "lspace", "rspace", "form"}
        assert tag in ("span", "th", "td") or "class" not in attributes
    for tag, attributes in Tags(sampler.page_html(text)).found:
        assert tag in ALLOWED | {"a", "img"}
        assert attributes.keys() <= {"href", "src", "alt", "rel", "title"}
        assert re.match("https?:|mailto:", attributes.get("href") or "https:")
        assert re.match("data:image/(png|jpeg|webp|gif);", attributes.get("src") or "data:image/png;")


@pytest.mark.parametrize("text", ["&nbsp;", "[a]: /x", "[](/words)", "![](a.png)", "<br>", "#", "``` \n```"])
def test_an_object_that_shows_nothing_is_refused(text):
    file = "text\n" + "".join(f'"{each}"\n' for each in (text, "one", "***", "$x$", "[a](b)"))
    found = sampler.OBJECT_KINDS["markdown"].read(io.BytesIO(file.encode()), lambda *_: None)
    assert [each.source for each in found.refusals] == ["row 2"]
    assert "shows nothing" in found.refusals[0].reason


def test_what_is_measured():
    found = sampler.describe_markdown(RICH)
    assert (found.headings, found.list_items, found.table_rows, found.code_lines, found.links) == (1, 3, 1, 2, 1)
    # Tea | Boil half a litre, then wait: | First | Second | nested | water | tea | 0 5 l | 6 g
    # | See the guide and coffee
    assert found.words == 1 + 6 + 3 + 2 + 3 + 2 + 5
    assert sampler.describe_markdown("One two. Three!").sentences == 2
    assert sampler.describe_markdown("# One\n\n- two\n- three.").sentences == 3
    assert sampler.describe_markdown("[words](https://example.org/not/words)").words == 1
    assert sampler.describe_markdown("a<br>b H<sub>2</sub>O $\\frac{a}{b}$").words == 3


PATHOLOGICAL = {
    "brackets": "'[' * 20_000",
    "pairs of brackets": "'[](' * 6_000",
    "quotations": "'>' * 20_000",
    "emphasis": "'*a_' * 6_600",
    "stars": "'*' * 20_000",
    "backticks": "''.join('`' * n + ' ' for n in range(1, 199))",
    "nested lists": "'- ' * 10_000",
    "columns": "'|' * 6_000 + chr(10) + '|-' * 3_000 + '|'",
    "entities": "'&' * 20_000",
    "formulas without an end": "(chr(92) + '(') * 9_000 + (chr(92) * 2 + ')') * 600",
    "lines that begin formulas": "(chr(92) + '[ a' + chr(10)) * 3_990 + chr(92) + ']'",
    "formulas": "'$x$' * 6_600",
    "escaped dollars": "('$' + chr(92) + '$') * 6_600",
    "strikes": "'~~a' * 6_600",
}


@pytest.mark.parametrize("text", PATHOLOGICAL.values(), ids=PATHOLOGICAL)
def test_a_text_that_is_made_to_be_slow_is_shown_and_measured_before_anybody_gives_up(text):
    told = f"text = ({text})[:20_000]; sampler.object_html(text); sampler.describe_markdown(text); print('done')"
    command = [sys.executable, "-c", f"import sampler; {told}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "done\n"
