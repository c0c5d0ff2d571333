"""The world of the demo: people with cards, their habits, those who steal from them, and the stream that comes of it.

    chance      randomness that is the same bytes on every machine
    places      cities and merchants
    people      cards and the habits of their holders
    visits      columns of payments before they are sent; what the modules below hand on
    habits      what people do: ordinary payments, and sprees, trips and bills that look like fraud
    fraud       what thieves do: velocity attacks, card testing, impossible travel
    stream      history and live traffic as records in the order of arrival
    labels      what turns out later
    files       both as JSON lines
    report      how much of the fraud a score catches, fresh and stale

It is made up from a seed alone and knows no engine; `features.py.txt` is a project that fits it. Importing a module of
it loads numpy, so the command line does that when a verb needs it.
"""

from __future__ import annotations
