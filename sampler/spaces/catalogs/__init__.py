"""A list of objects that a researcher brings, and how such lists are read from files."""
