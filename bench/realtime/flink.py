"""Flink 2.2 on this machine: its own distribution from PyPI, a job manager, a task manager, one SQL job."""

from __future__ import annotations

import hashlib
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from string import Template

from bench.realtime.processes import ended, finished
from headrace.machine import cache_folder, find_java
from headrace.processes.ports import free_ports

HERE = Path(__file__).parent
WHEEL = "apache-flink-libraries==2.2.0 --hash=sha256:675062484d9b04df228be80cf4179c9f92e9e11107a697ccbb1aa7d3b816772b"
JARS = (
    ("flink-sql-connector-kafka", "5.0.0-2.2", "5605c691d11a501382c383fecba37a7a552467da5ab7ba904ef5d6f3d62c5616"),
    ("flink-sql-gateway", "2.2.0", "4ff8b14df3bcd430a3f98df6fcf5ffa03c80a662d4f5a11006689e53f65fa6cd"),
)
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
STARTING = 60.0


def install() -> Path:
    """The folder of Flink's jars, fetched once."""
    folder = cache_folder(os.environ) / "bench" / "flink-2.2.0"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "requirements.txt").write_text(WHEEL + "\n", encoding="ascii")
        pip = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        finished([*pip, "--target", str(folder), "-r", str(folder / "requirements.txt")])
        lib = folder / "pyflink" / "lib"
        for artifact, version, sha256 in JARS:
            wanted = f"-Dartifact=org.apache.flink:{artifact}:{version}"
            finished(["mvn", "-q", "-B", COPY, wanted, f"-DoutputDirectory={lib}"])
            held = (lib / f"{artifact}-{version}.jar").read_bytes()
            if hashlib.sha256(held).hexdigest() != sha256:
                raise RuntimeError(f"{artifact} {version} is not the jar that was pinned")
        (folder / "ready").touch()
    return folder / "pyflink"


@contextmanager
def job(folder: Path, names: Mapping[str, str]) -> Iterator[None]:
    """The job while the block runs; `names` fills job.sql."""
    home, conf = install(), folder / "conf"
    conf.mkdir(parents=True)
    rpc, rest = free_ports(2)
    more = {
        "jobmanager.rpc.address": "127.0.0.1",
        "jobmanager.rpc.port": rpc,
        "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.host": "127.0.0.1",
        "rest.address": "127.0.0.1",
        "rest.bind-address": "127.0.0.1",
        "rest.port": rest,
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "io.tmp.dirs": folder / "tmp",
    }
    (folder / "tmp").mkdir()
    lines = [f"{name}: {value}" for name, value in more.items()]
    (conf / "config.yaml").write_text((HERE / "config.yaml").read_text("utf-8") + "\n".join(lines) + "\n", "utf-8")
    (conf / "log4j.properties").write_text(LOGGING, "utf-8")
    script = folder / "job.sql"
    script.write_text(Template((HERE / "job.sql").read_text("utf-8")).substitute(names), "utf-8")

    java = [str(find_java().home / "bin" / "java")]
    classpath = ":".join(str(jar) for part in ("lib", "opt") for jar in sorted((home / part).glob("*.jar")))
    every = _setting(conf, "env.java.opts.all").split()
    logging = [f"-Dlog4j.configurationFile={conf / 'log4j.properties'}"]
    base = [*java, *every, *logging]
    env = {**os.environ, "FLINK_CONF_DIR": str(conf)}

    def resources(kind: str) -> tuple[list[str], list[str]]:
        """The JVM options and the settings that Flink's own scripts would compute."""
        tool = ["org.apache.flink.runtime.util.bash.BashJavaUtils", f"GET_{kind}_RESOURCE_PARAMS"]
        jars = f"{home / 'bin' / 'bash-java-utils.jar'}:{classpath}"
        said = finished([*java, "-cp", jars, *tool, "--configDir", str(conf)], env)
        told = [line.partition(":")[2] for line in said.splitlines() if line.startswith("BASH_JAVA_UTILS_EXEC_RESULT:")]
        return told[0].split(), told[1].split() if len(told) > 1 else []

    manager, settings = resources("JM")
    worker, given = resources("TM")
    entry = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
    runner = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
    with ended([*base, *manager, "-cp", classpath, entry, "--configDir", str(conf), *settings], folder / "jm.log", env):
        _await(rest)
        with ended(
            [*base, *worker, "-cp", classpath, runner, "--configDir", str(conf), *given], folder / "tm.log", env
        ):
            client = "org.apache.flink.table.client.SqlClient"
            said = finished([*base, "-cp", classpath, client, "embedded", "-f", str(script)], env)
            if "Job ID" not in said:
                raise RuntimeError(f"Flink did not take the job: {said[-3000:]}")
            yield


def _setting(conf: Path, name: str) -> str:
    lines = (conf / "config.yaml").read_text("utf-8").splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith(f"{name}:"))


def _await(port: int) -> None:
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/overview", timeout=1).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise RuntimeError("Flink's job manager does not answer")


LOGGING = """rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c: %m%n
"""
