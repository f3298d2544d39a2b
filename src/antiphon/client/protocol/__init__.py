"""What an agent says, in v2 terms, and the tracking of its turns.

Nothing here knows `Client` or `ClientSession`: a user of this package brings a `Connection` and objects that
receive the results. `ClientSession` is one such user.
"""
