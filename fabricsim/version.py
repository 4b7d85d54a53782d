"""The version: its one source, for the package and for what results say of themselves."""

__version__ = "0.1.0.dev0"
