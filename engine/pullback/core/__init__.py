"""What every rule is made of: primitives, their kinds, and the cases they are tried on."""
