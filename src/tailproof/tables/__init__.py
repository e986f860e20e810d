"""One table for every tool: rows of arms and rewards, from files, data frames and journals."""

from tailproof.tables.checked import Records
from tailproof.tables.how import Reading
from tailproof.tables.reading import records

__all__ = ["Reading", "Records", "records"]
