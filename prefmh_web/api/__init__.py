"""The site for programs: what a researcher does in the browser, over HTTP with a token.

authentication   who a token belongs to, and what it may do
problems         one shape for whatever was wrong
routes/          a file for each part of the address
site             all of it together, with its OpenAPI document
"""
