"""The site for programs: what a researcher does in the browser, over HTTP with a token."""
