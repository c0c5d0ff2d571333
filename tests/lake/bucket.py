"""A server on this machine that speaks S3, with a bucket in it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import boto3

from tests.processes.cluster import free_ports


@contextmanager
def bucket() -> Iterator[dict[str, str]]:
    """Options that reach a bucket called lake."""
    (port,) = free_ports(1)
    # A process of its own: deltalake does not let other threads of Python run while it waits for an answer.
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    options = {
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "something",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    client = boto3.client(
        "s3",
        endpoint_url=options["AWS_ENDPOINT_URL"],
        region_name=options["AWS_REGION"],
        aws_access_key_id=options["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=options["AWS_SECRET_ACCESS_KEY"],
    )
    try:
        listens(port)
        client.create_bucket(Bucket="lake")
        yield options
    finally:
        server.kill()
        server.wait()


def listens(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline
        time.sleep(0.1)
