"""Keys as requests write them."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import DataError
from headrace.read.key import key_of, key_of_names, named, segments
from tests.serve.conftest import everyone, shops, users

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(user=texts, shop=st.integers(-(2**63), 2**63 - 1), paid=st.booleans())
def test_every_key_can_be_written_in_a_path(user, shop, paid):
    path = f"/{shop}/{'true' if paid else 'false'}/{quote(user, safe='')}"
    assert key_of(shops, segments(path.encode())) == (shop, paid, user)


@given(user=texts)
def test_every_key_can_be_written_in_a_query(user):
    assert key_of_names(users, named(f"user={quote(user, safe='')}".encode())) == (user,)


def test_a_global_view_has_an_empty_key():
    assert key_of(everyone, segments(b"")) == ()


def test_the_empty_string_is_a_key():
    assert key_of(users, segments(b"/")) == ("",)
    assert key_of_names(users, named(b"user=")) == ("",)


def test_a_plus_in_a_path_is_a_plus():
    assert key_of(users, segments(b"/a+b")) == ("a+b",)


@pytest.mark.parametrize("path", [b"", b"/1", b"/1/true", b"/1/true/a/b"])
def test_a_key_of_another_length_is_refused(path):
    with pytest.raises(DataError, match=r"kept by 3 columns") as refused:
        key_of(shops, segments(path))
    assert "/v1/features/shops/{shop}/{paid}/{user}" in str(refused.value.hint)


@pytest.mark.parametrize("shop", ["", "01", "+1", "1.0", "-0", "1e3", " 1", "٣", "9223372036854775808", "x"])
def test_an_integer_has_one_way_to_be_written(shop):
    with pytest.raises(DataError, match="'shop' is of type integer"):
        key_of(shops, [shop, "true", "a"])


@pytest.mark.parametrize("paid", ["", "True", "1", "yes"])
def test_a_boolean_is_true_or_false(paid):
    with pytest.raises(DataError, match="'paid' is of type boolean"):
        key_of(shops, ["1", paid, "a"])


@pytest.mark.parametrize("raw", [b"/%ff", b"/%ed%a0%80"])
def test_a_path_that_is_not_utf8_is_refused(raw):
    with pytest.raises(DataError, match="not percent-encoded UTF-8"):
        segments(raw)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (b"user=%ff", "not percent-encoded UTF-8"),
        (b"user=a&user=b", "given twice"),
        (b"usr=a", "no such column"),
        (b"", "needs its whole key"),
    ],
)
def test_a_query_that_is_not_the_key_is_refused(query, message):
    with pytest.raises(DataError, match=message):
        key_of_names(users, named(query))
