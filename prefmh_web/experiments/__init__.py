"""The paper's experiments as campaigns: `manage.py experiment`."""
