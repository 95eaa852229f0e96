"""Build sides of a query: run once each, shared between filters, kept in a cache."""
