"""How often what is told is right: projects whose changes are known, through the real API and worker."""
