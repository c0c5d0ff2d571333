"""Mutations: the code is broken on purpose, and the tests must notice.

`named` reads the list of mutations that must always be caught, `generated` chooses more by a seed, `selection` says
which tests may notice one, `trial` breaks a copy of the tree and runs them. The command is `make mutations`.
"""
