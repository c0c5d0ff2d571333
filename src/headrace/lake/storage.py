"""Object storage for the files of a table, from the same options that deltalake takes for its commits.

Options are named as in the AWS environment (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL`, ...), in either
case; what is not given comes from the machine's own AWS configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from pyarrow import fs


def s3(options: Mapping[str, str]) -> fs.FileSystem:
    """S3, or anything that speaks its protocol.

    >>> s3({"AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}).region
    'eu-central-1'
    """
    given = {name.upper(): value for name, value in options.items()}
    address = given.get("AWS_ENDPOINT_URL") or given.get("AWS_ENDPOINT")
    endpoint = urlsplit(address) if address else None
    wanted = {
        "access_key": given.get("AWS_ACCESS_KEY_ID"),
        "secret_key": given.get("AWS_SECRET_ACCESS_KEY"),
        "session_token": given.get("AWS_SESSION_TOKEN"),
        "region": given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION"),
        "endpoint_override": endpoint.netloc if endpoint else None,
        "scheme": endpoint.scheme if endpoint else None,
    }
    return fs.S3FileSystem(**{name: value for name, value in wanted.items() if value is not None})
