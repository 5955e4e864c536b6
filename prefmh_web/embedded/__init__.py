"""Everything in one process: tasks on threads, an in-memory channel layer, the server and its clock."""
