"""A server that speaks S3 over HTTP on loopback, in a process of its own, so that it can be killed."""

import os
import subprocess
import sys
import time
from typing import Any

import boto3
import httpx
from botocore.config import Config

from touchstone.embedded import free_port

BUCKET = "touchstone-tests"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


class S3Server:
    """moto's server; what it holds is in its memory, and gone with it."""

    def __init__(self) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "moto.server",
            "-H",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{self.address}/moto-api/", timeout=2)
                break
            except httpx.HTTPError:
                assert time.monotonic() < deadline, "moto's server did not start"
                time.sleep(0.1)
        self.client.create_bucket(Bucket=BUCKET)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def environment(self) -> dict[str, str]:
        """Return what a process needs to find it."""
        return {**KEYS, "AWS_ENDPOINT_URL_S3": self.address}

    @property
    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.address,
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=10),
        )

    def objects(self) -> dict[str, bytes]:
        """Return all objects of the bucket with their bytes."""
        found = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {
            one["Key"]: self.client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in found
        }

    def uploads(self) -> list[str]:
        """Return the names of the uploads in parts that were begun and not ended."""
        found = self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
        return [one["Key"] for one in found]


def use(settings: Any, monkeypatch: Any, server: S3Server, prefix: str, cache: os.PathLike[str]) -> None:
    """Let Django keep its files below this prefix, and their copies in this folder."""
    from touchstone.settings import file_storage

    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    settings.FILES_URL = f"s3://{BUCKET}/{prefix}"
    settings.FILES_CACHE = cache
    settings.STORAGES = {
        **settings.STORAGES,
        "default": file_storage(settings.FILES_URL, settings.MEDIA_ROOT),
    }
