"""What the application said of itself during a load test, summed up."""

from wallaroo_loadgen.control.own_figures import said_most


def test_the_sentence_that_came_most_often_counts_whatever_its_numbers():
    keeps_up = "It keeps up with {} messages a second, and is busy for {}% of the time."
    said = ["It is starting.", "It is starting.", *[keeps_up.format(500 + n, n) for n in range(5)]]
    assert said_most([*said, "It is stopping."]) == keeps_up.format(504, 4)
    assert said_most(["It is starting."]) == "It is starting."
    assert said_most([]) == ""


def test_numbers_in_names_tell_sentences_apart():
    slow = "Sink p/{} is slow: {} outputs wait."
    said = [slow.format(0, 9), slow.format(0, 8), slow.format(1, 7)]
    assert said_most(said) == slow.format(0, 8)
