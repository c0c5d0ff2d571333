"""`headrace demo`: what fresh features are worth, shown on card payments that are made up (`world`).

    shop        history and labels in files, and what comes after them
    stack       a project's processes while they run, fed and read
    turning     weeks replayed, in which thieves change their ways
    traffic     live payments on their way in, and their scores as they come out
    stale       the same payments scored on features one hour old
    judging     what was caught, how fast, and whether everything adds up

Everything is real: log, Spark, store, HTTP and scorer are processes of their own. What is shown and how, and the steps
to a model, which are verbs that anybody would type, are `cli.demo`'s business.
"""
