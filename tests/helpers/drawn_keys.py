"""Keys of every kind, drawn by Hypothesis."""

from hypothesis import strategies as st

text = st.text(st.characters(exclude_categories=()))  # lone surrogates too
keys = st.recursive(
    st.one_of(text, st.binary(), st.integers()),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)
