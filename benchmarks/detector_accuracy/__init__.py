"""Accuracy of the detector on series whose changes are known, beside other tools' rules on the same series."""
