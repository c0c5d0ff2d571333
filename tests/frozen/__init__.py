"""Observable behaviour that must stay the same while the source tree is renamed and moved: bytes, names and documents.

Each test writes one thing down as text and compares it with tests/golden/frozen. A difference is a break for users,
unless the change was made on purpose: then `UPDATE_GOLDEN=1` rewrites the file, in a commit that says why.

Other tests already freeze these, so they are not here:

    tests/test_docs.py            the help of every verb, the meaning of every setting, every error class with its exit
                                  code and HTTP status, the OpenAPI document of a new project (docs/reference)
    tests/test_public_surface.py  the public names (tests/golden/public_names.txt)
    tests/plan/test_build.py      fingerprints and partial columns of a plan (tests/golden/plan_json.txt)
    tests/accounting              the least number of tests (tests/golden/frozen/number_of_tests.txt)
"""
