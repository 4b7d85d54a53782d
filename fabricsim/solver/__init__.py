"""Rates, times and bounds: what the links allow, given the routes.

Everything here works on arrays and SciPy sparse matrices alone. Nothing here knows of fabrics,
chips or collectives.
"""
