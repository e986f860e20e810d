"""The page of the service: one reader of the journal, its sentences, and its files."""
