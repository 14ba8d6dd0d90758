"""Parts of every rule: primitives, their kinds, and the cases they are tried on."""
