"""Sums of products of names: enough to see whether two slices overlap."""

import ast
from collections import Counter

Polynomial = Counter[tuple[str, ...]]
"""Products of names, sorted, each with how often it is added; the empty product is the number 1."""


def polynomial(node: ast.expr) -> Polynomial | None:
    """Return an expression of +, - and * as a sum of products, or None if it is something else.

    >>> polynomial(ast.parse("(b + 1) * size", mode="eval").body)
    Counter({('b', 'size'): 1, ('size',): 1})
    """
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return Counter({(): number})
        case ast.Name(id=name):
            return Counter({(name,): 1})
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as kind, right=right):
            one, other = polynomial(left), polynomial(right)
            return None if one is None or other is None else _combined(one, kind, other)
    return None


def _combined(one: Polynomial, kind: ast.operator, other: Polynomial) -> Polynomial:
    result = Counter(one)
    if isinstance(kind, ast.Mult):
        result = Counter()
        for left, times in one.items():
            for right, more in other.items():
                result[tuple(sorted((*left, *right)))] += times * more
    elif isinstance(kind, ast.Add):
        result.update(other)
    else:
        result.subtract(other)
    return Counter({product: times for product, times in result.items() if times})


def factor_of(name: str, sum_of_products: Polynomial) -> Polynomial:
    """Return what a name is multiplied with.

    >>> factor_of("b", polynomial(ast.parse("b * size + i", mode="eval").body))
    Counter({('size',): 1})
    """
    factors: Polynomial = Counter()
    for product, times in sum_of_products.items():
        if name in product:
            rest = list(product)
            rest.remove(name)
            factors[tuple(rest)] += times
    return factors


def number(sum_of_products: Polynomial, known: dict[str, int]) -> int | None:
    """Return what it comes to with these numbers for names, if they are all known."""
    total = 0
    for product, times in sum_of_products.items():
        for name in product:
            if name not in known:
                return None
            times *= known[name]  # noqa: PLW2901 - the product grows
        total += times
    return total
