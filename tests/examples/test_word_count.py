"""Word count, in its forms: all give the same bytes (graph-1)."""

import pytest

FORMS = ("word_count", "word_count_classes", "word_count_u64", "word_count_pipeline")


@pytest.mark.parametrize("form", FORMS)
def test_every_update_goes_out_as_a_line(form, application, run):
    result = run(
        application(form),
        {"Split and Count": [b"The cat and\nthe dog.", b"", b"AND: the end!"]},
    )
    assert result.outputs == {
        ("Split and Count", 0): [
            b"the => 1\n",
            b"cat => 1\n",
            b"and => 1\n",
            b"the => 2\n",
            b"dog => 1\n",
            b"and => 2\n",
            b"the => 3\n",
            b"end => 1\n",
        ]
    }
    assert result.dead_letters == []


@pytest.mark.parametrize("form", FORMS)
def test_words_that_begin_with_no_letter_from_a_to_z_are_counted_together(form, application, run):
    text = "Élan zebra 42 'élan' _x_ {z~ ½ “quoted” 42"
    result = run(application(form), {"Split and Count": [text.encode()]})
    assert b"".join(result.output).decode() == (
        "élan => 1\nzebra => 1\n42 => 1\nélan => 2\nx => 1\nz => 1\n"
        "½ => 1\n“quoted” => 1\n42 => 2\n"
    )
    letters = {"!", "x", "z"} if form != "word_count_u64" else {ord("!"), ord("x"), ord("z")}
    [totals] = result.entities.values()
    assert totals.keys() == letters


@pytest.mark.parametrize("form", FORMS)
def test_text_that_is_not_utf_8_is_a_dead_letter_and_harms_no_other(form, application, run):
    result = run(application(form), {"Split and Count": [b"a", b"a \xff", b"a"]})
    assert result.output == [b"a => 1\n", b"a => 2\n"]
    assert [(letter.lineage, letter.reason) for letter in result.dead_letters] == [((1,), "decode")]
