"""https: the certificate and its key, looked at before anything listens, with errors that say what is wrong.

No error shows what is in the files.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from headrace.errors import ConfigError


def certificate_of(certificate: str, key: str) -> ssl.SSLContext | None:
    """How to serve over https; None when no certificate is named.

    >>> certificate_of("", "")
    """
    if not certificate and not key:
        return None
    if not certificate:
        hint = "Name the certificate in serve.certificate too."
        raise ConfigError("bad-certificate", "serve.certificate_key has no certificate.", hint=hint)
    for name, file in (("serve.certificate", certificate), ("serve.certificate_key", key)):
        _refuse_unreadable(name, file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    asked: list[str] = []

    def password() -> str:
        # Without an answer OpenSSL would wait for a person to type one.
        asked.append("password")
        return ""

    try:
        context.load_cert_chain(certificate, key or None, password=password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise _unusable(error, certificate, key, locked=bool(asked)) from error
    return context


def _refuse_unreadable(name: str, file: str) -> None:
    if not file:
        return
    try:
        Path(file).read_bytes()
    except OSError as error:
        message = f"The file of {name} cannot be read."
        hint = "Look at its path and its permissions."
        raise ConfigError("bad-certificate", message, got=error.strerror, where=file, hint=hint) from error


def _unusable(error: Exception, certificate: str, key: str, *, locked: bool) -> ConfigError:
    reason = getattr(error, "reason", None) or ""
    where = key or certificate
    if reason == "KEY_VALUES_MISMATCH":
        message, hint = "The key does not belong to the certificate.", "Name the two files that were made together."
    elif locked:
        message, hint = "The certificate's key has a password.", "Serving takes a key without one; protect its file."
    elif not key:
        message = "The certificate, or its key in the same file, cannot be read."
        hint = "It is a PEM file; name the key in serve.certificate_key when it is in another one."
    else:
        message, hint = "The certificate or its key cannot be read.", "Both are PEM files."
    return ConfigError("bad-certificate", message, got=reason or type(error).__name__, hint=hint, where=where)


def trusting(certificate: str) -> ssl.SSLContext | None:
    """How verbs on this machine trust their own project's serving: exactly the certificate it shows."""
    if not certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # It is reached by its address, and it is known by its certificate, which need not be an authority's.
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(certificate)
    return context
