"""Model endpoints: servers that judge, or that continue texts.

    addresses.py       which addresses may be called, checked when the connection is made
    loop.py            the event loop on which all servers are asked
    wire.py            one exchange over HTTP, bounded in time and size, its faults in words
    unpacking.py       replies that come compressed, to a bounded length
    keys.py            keys from the environment, each for its own hosts
    protocol.py        how a model server is asked and read, by the facts of its kind
    servers.py         a row of these facts for each kind of server
    waits.py           how long a server that refuses for now asks to wait
    replies.py         what servers answer, read by shape
    errors.py          what can go wrong, sorted by what to do about it
    client.py          one request: sent, read, and turned into a result or an error
    limits.py          how many requests at a time a server serves best, found by trying
    minutes.py         requests and tokens a minute: a sliding window
    token_estimates.py how many tokens a request will have, before it is sent
    gates.py           circuit, places, limits a minute and counts of an endpoint, in memory
    accounting.py      requests, errors, tokens, time and cost, by the hour
    calls.py           requests side by side through all of the above; the one way to call an endpoint
    identity.py        which model a reply says that it is from
    judge_calls.py     votes and ratings
    mixed_votes.py     votes drawn from log-probabilities, sampled where those do not tell
    tokenising.py      texts to token ids and back, by the server
    language_model.py  texts, token by token
    abilities.py       what kind of server an endpoint is, what it can do, which fields of a request it obeys
    truth.py           whether it samples from the law that it tells
    keeping.py         a thread that does something once a second
    testing.py         *Test*: these two, made by a worker, with its progress in the database
    watched.py         how many requests a test has made, and the word that stops it

Nothing here knows of campaigns: `campaigns` asks, and stores what comes back. No call is made inside a transaction.
"""
