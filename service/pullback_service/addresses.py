"""Where things are on the web."""

API = "/api/v1"
OPENAPI = f"{API}/openapi.json"
