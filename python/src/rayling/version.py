"""The version of this package, which is that of the JavaScript runtime."""

__version__ = "0.1.0"
