"""CSV cells that no spreadsheet runs as a formula, without loss.

A text gets one apostrophe in front if what a spreadsheet would look at first, behind white space and characters that
show nothing, is one of = + - @ or an apostrophe, in any of their widths; or a semicolon, which starts a new cell
where semicolons separate; or if it begins with a tab, the end of a line or another control character, which
spreadsheets skip or split at.

Reading takes one apostrophe away wherever there is one (`sampler/record.py`). A text that begins with an apostrophe
always gets another, so nothing is lost, and a record that was written when fewer texts were protected is read alike.
Numbers that we write ourselves are left alone.
"""

import unicodedata

_DANGEROUS = frozenset("=+-@';")
# White space, and what shows nothing: control and format characters, such as a zero-width space.
_UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp", "Zs"))
# The minus of mathematics has no narrow form in Unicode's tables.
_MINUS = "\N{MINUS SIGN}"


def harmless(text: str) -> str:
    """Return the cell to write for a text of unknown origin."""
    return f"'{text}" if _is_dangerous(text) else text


def _is_dangerous(text: str) -> bool:
    if unicodedata.category(text[:1] or "a") == "Cc":
        return True
    seen = next((character for character in text if unicodedata.category(character) not in _UNSEEN), "")
    # Full-width and small forms are, in this normal form, the plain character.
    return seen == _MINUS or bool(_DANGEROUS.intersection(unicodedata.normalize("NFKC", seen)))
