"""Web addresses of the API and of pages."""

API = "/api/v1"
OPENAPI = f"{API}/openapi.json"
