"""The only files that know a framework."""
