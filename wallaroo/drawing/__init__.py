"""The topology, drawn: as lines of text (`tree`), as Mermaid (`mermaid`), as SVG (`svg`).

All three use the same labels (`labels`) and need only the standard library.
"""
