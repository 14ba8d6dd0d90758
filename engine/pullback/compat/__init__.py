"""Other engines' vocabularies, spoken by this one."""
