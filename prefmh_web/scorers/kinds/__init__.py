"""Kinds of scorers, a file for each; `SCORER_KINDS` lists them."""
