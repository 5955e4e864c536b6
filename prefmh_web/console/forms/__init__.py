"""The forms of the console. Those of a campaign's configuration are made of its declaration (`schema_form.py`)."""
