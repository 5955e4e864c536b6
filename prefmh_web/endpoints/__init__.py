"""Model endpoints: servers that judge, or that continue texts.

    models.py       endpoints, their tests, what they have cost
    errors.py       what can go wrong, sorted by what to do about it
    addresses.py    which addresses may be called, checked when the connection is made; which key goes where
    loop.py         the event loop on which all servers are asked
    servers.py      how a model server is asked and read, by the facts of its kind in servers.toml
    replies.py      what servers answer, which model they say it is from, and how long one asks to wait
    client.py       one request: sent, bounded in time and size, read, and turned into a result or an error
    limits.py       circuit, places, limits a minute and counts of an endpoint, in memory; what calls came to
    calls.py        requests side by side through all of the above; the one way to call an endpoint
    judge_calls.py  votes and ratings
    writer.py       texts, token by token
    truth.py        whether a server samples from the law that it tells
    probe.py        *Test*: what kind of server an endpoint is, what it can do, and its law, made by a worker

Nothing here knows of campaigns: `campaigns` asks, and stores what comes back. No call is made inside a transaction.
"""
