"""The routes of the service, by purpose."""
