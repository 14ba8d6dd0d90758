"""The service: results in Postgres, an HTTP API over them."""
