"""Windows and watermarks for the engines that are judged: pure rules, without input or output.

The compiled path and Spark's workers both use it. The interpreter and the conformance suite, which
judge them, have rules of their own; import contracts keep it so.
"""
