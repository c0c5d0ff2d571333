"""What a model takes and what it is given: each difference is a sentence of its own, and each changes the digest."""

from __future__ import annotations

import pytest

from headrace.errors import DataError
from headrace.models import ModelColumn, differences, fingerprint
from headrace.models.columns import name_differences, refuse_differences

A, B, C = ModelColumn("a", "integer", "1"), ModelColumn("b", "float", "2"), ModelColumn("c", "string", "3")


def test_equal_columns_do_not_differ():
    assert differences([A, B], [A, B]) == []


@pytest.mark.parametrize(
    ("given", "sentences"),
    [
        ([A], ["Column 'b' is missing: the model takes it, and it is not given."]),
        ([A, B, C], ["Column 'c' is extra: it is given, and the model does not take it."]),
        (
            [B, A],
            [
                "Column 'a' is in another place: number 2, where the model takes it as 1.",
                "Column 'b' is in another place: number 1, where the model takes it as 2.",
            ],
        ),
        ([A, ModelColumn("b", "string", "2")], ["Column 'b' is given as string, and the model takes it as float."]),
        ([A, ModelColumn("b", "float", "9")], ["Column 'b' is defined otherwise than when the model was trained."]),
    ],
)
def test_each_difference_is_named(given, sentences):
    assert differences([A, B], given) == sentences


def test_a_column_that_is_missing_puts_no_other_in_another_place():
    assert differences([A, B, C], [B, C]) == ["Column 'a' is missing: the model takes it, and it is not given."]


def test_several_differences_are_all_named():
    found = differences([A, B], [C, ModelColumn("b", "string", "2")])
    assert [sentence.split()[3] for sentence in found] == ["missing:", "extra:", "given"]


@pytest.mark.parametrize(
    "other",
    [
        [B, A],
        [A],
        [ModelColumn("x", "integer", "1"), B],
        [ModelColumn("a", "float", "1"), B],
        [A, ModelColumn("b", "float", "")],
    ],
)
def test_order_name_type_and_definition_all_change_the_fingerprint(other):
    assert fingerprint([A, B]) == fingerprint([A, B]) == "01df235e434d"
    assert fingerprint(other) != fingerprint([A, B])


def test_a_refusal_says_every_difference():
    with pytest.raises(DataError) as caught:
        refuse_differences(name_differences(["a", "b"], ["b", "c"]), "The model")
    assert caught.value.code == "wrong-columns"
    assert "'a' is missing" in str(caught.value.got)
    assert "'c' is extra" in str(caught.value.got)
