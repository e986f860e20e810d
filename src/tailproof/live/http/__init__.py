"""The service over HTTP: application, server, page and clients."""
