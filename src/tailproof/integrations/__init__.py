"""Other libraries: their bandits behind our contract (`guests`), ours behind theirs (`hosts`)."""
