"""Steps: readings judged against the commit they were made from, stored with every upload."""
