"""Model endpoints: servers that judge, or that continue texts.

    addresses.py       which addresses may be called, checked when the connection is made
    connections.py     connections that are bounded in time and size
    unpacking.py       replies that come compressed, to a bounded length
    keys.py            keys from the environment, each for its own hosts
    dialects.py        what each kind of server has to be told
    replies.py         what servers answer, read by shape
    errors.py          what can go wrong, sorted by what to do about it
    client.py          one request: sent, read, and turned into a result or an error
    breaker.py         the circuit breaker, kept in the database
    slots.py           the limit on requests at a time, over all processes
    accounting.py      requests, errors, tokens, time and cost, by the hour
    calls.py           requests side by side through all of the above; the one way to call an endpoint
    identity.py        which model a reply says that it is from
    judge_calls.py     votes and ratings
    mixed_votes.py     votes drawn from log-probabilities, sampled where those do not tell
    tokenising.py      texts to token ids and back, by the server
    language_model.py  texts, token by token
    probe.py           what an endpoint can do
    examination.py     whether its votes can have the law that they should have

Nothing here knows of campaigns: `campaigns` asks, and stores what comes back. No call is made inside a transaction.
"""
