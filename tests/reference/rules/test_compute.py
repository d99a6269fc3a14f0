"""What becomes of what multi computations give."""

from small_steps import computation, gives_items, multi


def test_compute_2_a_bad_result_is_said_to_be_one(app, run):
    [letter] = run(app(("to", gives_items("text"))), [b"a"]).dead_letters
    assert "a multi computation returns" in letter.error


def test_compute_2_it_is_consumed_before_anything_goes_on(app, run):
    order = []

    @multi
    def items(text):
        for character in text:
            order.append(f"yields {character}")
            yield character
        order.append("end")

    @computation
    def next_step(character):
        order.append(f"takes {character}")
        return character

    run(app(("to", items), ("to", next_step)), [b"ab"])
    assert order == ["yields a", "yields b", "end", "takes a", "takes b"]
