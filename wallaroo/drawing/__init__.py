"""The topology, drawn: as lines of text (`tree`), as Mermaid (`mermaid`), as SVG (`svg`).

All three say the same of each node (`labels`); none needs more than the standard library.
"""
