"""CSV cells that no spreadsheet runs as a formula, without loss.

A text that begins, after white space, with one of = + - @ (or its full-width form), with a control character
that spreadsheets skip, or with an apostrophe, gets an apostrophe in front. Reading takes one apostrophe away.
Numbers that we write ourselves are left alone.
"""

_DANGEROUS = tuple("=+-@＝＋－＠'")


def harmless(text: str) -> str:
    """Return the cell to write for a text of unknown origin."""
    return f"'{text}" if text[:1] in ("\t", "\r", "\n") or text.lstrip().startswith(_DANGEROUS) else text
