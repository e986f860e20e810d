"""Sorting and medians of a path's numbers, in place, and rounding as NumPy rounds."""

from tailproof.typing import Array

__all__ = ["median_of", "middle_of", "nearest_even", "select", "sort_pairs", "sort_up_to"]


def sort_up_to(x: Array, n: int) -> None:
    """Sort the first n numbers, by Shell's method with Knuth's gaps: n is small."""
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value, j = x[i], i
            while j >= gap and x[j - gap] > value:
                x[j] = x[j - gap]
                j -= gap
            x[j] = value
        gap = (gap - 1) // 3


def sort_pairs(x: Array, y: Array, n: int) -> None:
    """Sort n pairs by their first number, and then by their second."""
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            one, other, j = x[i], y[i], i
            while j >= gap and (x[j - gap] > one or (x[j - gap] == one and y[j - gap] > other)):
                x[j], y[j] = x[j - gap], y[j - gap]
                j -= gap
            x[j], y[j] = one, other
        gap = (gap - 1) // 3


def middle_of(x: Array, n: int) -> float:
    """Return the median of n sorted numbers; opposite infinities cancel."""
    low, high = x[(n - 1) // 2], x[n // 2]
    return low if low == high else low / 2.0 + high / 2.0


def select(x: Array, n: int, k: int) -> float:
    """Return the number that sorting would put in place k, and put none that is smaller after it.

    Source: Hoare 1961, from memory. Differences: the pivot is what stands in place k.
    """
    first, last = 0, n - 1
    while first < last:
        pivot, i, j = x[k], first, last
        while i <= j:
            while x[i] < pivot:
                i += 1
            while pivot < x[j]:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i, j = i + 1, j - 1
        if j < k:
            first = i
        if k < i:
            last = j
    return x[k]


def median_of(x: Array, n: int) -> float:
    """Return the median of n numbers, which change their places; opposite infinities cancel."""
    high = select(x, n, n // 2)
    if n % 2 == 1:
        return high
    low = x[0]
    for i in range(n // 2):
        low = max(low, x[i])
    return low if low == high else low / 2.0 + high / 2.0


def nearest_even(x: float) -> int:
    """Round a number that is not negative to the nearest integer, halves to the even one."""
    low = int(x)
    if x - low > 0.5 or (x - low == 0.5 and low % 2 == 1):
        return low + 1
    return low
