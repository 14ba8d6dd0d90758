"""How often the detector is right, on series whose changes are known, beside other tools' rules on the same series."""
