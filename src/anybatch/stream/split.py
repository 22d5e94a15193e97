"""How a batch is cut into parts."""


def even_parts(rows: int, most: int) -> list[int]:
    """Return the sizes of the parts of a batch: two sizes at most, none of them tiny.

    >>> even_parts(100, 64)
    [50, 50]
    """
    count = -(-rows // most)
    return [rows // count + (at < rows % count) for at in range(count)]
