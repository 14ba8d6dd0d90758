"""Reports: what one upload says, kept whole and taken apart into points."""
