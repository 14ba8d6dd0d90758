"""Help: reading a number, bringing one here, and the glossary."""
