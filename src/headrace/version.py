"""The version of Headrace, for those below what `import headrace` brings."""

VERSION = "0.1.0.dev0"
