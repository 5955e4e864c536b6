"""Molecules that grow and shrink by fragments: states, base law, vocabulary, properties, drawings."""
