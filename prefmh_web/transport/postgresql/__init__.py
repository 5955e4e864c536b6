"""Django's PostgreSQL, with a cheaper look at the connections that it takes from a pool."""
