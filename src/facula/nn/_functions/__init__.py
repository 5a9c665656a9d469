"""What of ``facula.nn.functional`` is written in Python, each file one area.

The operators of ``nn.functional`` are rows of the table; here stands only what takes callables,
flags that choose between operators, or other things that are Python's.
"""
