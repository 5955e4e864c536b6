"""Model endpoints: servers that judge, or that continue texts.

    addresses.py       which addresses may be called, checked when the connection is made
    connections.py     connections that are bounded in time and size
    unpacking.py       replies that come compressed, to a bounded length
    keys.py            keys from the environment, each for its own hosts
    dialects/          what each kind of server has to be told, and where its answer stands: a file for each
    waits.py           how long a server that refuses for now asks to wait
    replies.py         what servers answer, read by shape
    errors.py          what can go wrong, sorted by what to do about it
    client.py          one request: sent, read, and turned into a result or an error
    breaker.py         the circuit breaker, kept in the database
    limits.py          how many requests at a time a server serves best, found by trying
    slots.py           the limit on requests at a time, over all processes
    minutes.py         requests and tokens a minute: a sliding window
    minute_rows.py     the limits a minute, over all processes
    permits.py         a permit for each request of a call, under these limits
    token_estimates.py how many tokens a request will have, before it is sent
    gates.py           all of these and the counts together: by the row, or kept in memory by a process of many calls
    keeping.py         the thread that renews and writes what such a process keeps
    accounting.py      requests, errors, tokens, time and cost, by the hour
    calls.py           requests side by side through all of the above; the one way to call an endpoint
    identity.py        which model a reply says that it is from
    judge_calls.py     votes and ratings
    mixed_votes.py     votes drawn from log-probabilities, sampled where those do not tell
    tokenising.py      texts to token ids and back, by the server
    language_model.py  texts, token by token
    probe.py           what an endpoint can do
    negotiation.py     which fields of a request it obeys, seen by their effect
    examination.py     whether its votes can have the law that they should have
    testing.py         *Test*: the two before the last, made by a worker, with its progress in the database
    watched.py         how many requests a test has made, and the word that stops it

Nothing here knows of campaigns: `campaigns` asks, and stores what comes back. No call is made inside a transaction.
"""
