"""Fetches the services that the tests start: ``make services``.

They go into a cache folder outside the repository, each in a folder of its version. What is there
is not fetched again; what was interrupted is begun again.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_LONGEST_STEP_S = 1800

_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>cadenza</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency> <!-- without it the broker's log is silent -->
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>2.24.3</version>
    </dependency>
  </dependencies>
</project>
"""


class Unavailable(Exception):
    """A service is not there and cannot be fetched; the message says why."""


@dataclass(frozen=True, slots=True)
class Service:
    """A program and how it is fetched.

    Attributes:
        name: Its name.
        version: The version that is fetched.
        program: What is started, within the folder it is fetched into.
        needs: The programs that fetching and running it takes, each with what provides it.
        takes: How long fetching takes, for whoever waits.
        make: Fills an empty folder.
        installed: Finds the program where the machine's owner has installed it.
    """

    name: str
    version: str
    program: str
    needs: dict[str, str]
    takes: str
    make: Callable[[Path, str], None]
    installed: Callable[[], Path | None]

    @property
    def folder(self) -> Path:
        """Where it lies once it is fetched."""
        return cache() / f"{self.name}-{self.version}"

    def find(self) -> Path | None:
        """Return the program: the machine's own, else the fetched one, else None."""
        fetched = self.folder / self.program
        return self.installed() or (fetched if fetched.exists() else None)

    def check_needs(self) -> None:
        """Raise ``Unavailable`` with the first prerequisite that is missing."""
        for program, source in self.needs.items():
            if shutil.which(program) is None:
                message = f"{self.name} needs {program!r}, which is not on PATH; install {source}"
                raise Unavailable(message)


def cache() -> Path:
    """Return the folder for what is fetched."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cadenza"


def fetch(service: Service) -> None:
    """Fetch a service, unless it is there.

    Raises:
        Unavailable: A prerequisite is missing, or fetching failed.
    """
    if found := service.find():
        _say(service, f"is there: {found}")
        return
    service.check_needs()
    cache().mkdir(parents=True, exist_ok=True)
    with _alone(service):
        if service.find():
            _say(service, "has been fetched by another process meanwhile")
            return
        for left in cache().glob(f"{service.folder.name}.*"):  # by whoever was interrupted
            shutil.rmtree(left)
        _say(service, f"is fetched into {service.folder}; this takes {service.takes}")
        begun = time.monotonic()
        unfinished = Path(tempfile.mkdtemp(prefix=f"{service.folder.name}.", dir=cache()))
        service.make(unfinished, service.version)
        unfinished.chmod(0o755)
        unfinished.rename(service.folder)
        _say(service, f"is ready, after {time.monotonic() - begun:.0f} s")


@contextmanager
def _alone(service: Service) -> Iterator[None]:
    """Hold a service's lock: two processes must not fetch it at once."""
    with (cache() / f"{service.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(service, "is being fetched by another process; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(service: Service, what: str) -> None:
    print(f"{service.name} {service.version} {what}", flush=True)


def _run(folder: Path, *command: str) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST_STEP_S,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise Unavailable(f"{command[0]!r} did not end within {_LONGEST_STEP_S} s") from exc
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-15:])
        raise Unavailable(f"{' '.join(command)} failed with {done.returncode}:\n{last}")


def _make_kafka(folder: Path, version: str) -> None:
    (folder / "pom.xml").write_text(_POM.format(version=version))
    _run(folder, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs")


def _make_jaeger(folder: Path, version: str) -> None:
    package = "github.com/jaegertracing/jaeger/cmd/jaeger"
    _run(folder, "go", "mod", "init", "cadenza-jaeger")
    _run(folder, "go", "get", "-tool", f"{package}@{version}")
    _run(folder, "go", "build", "-o", "jaeger", package)


def _installed_kafka() -> Path | None:
    script = shutil.which("kafka-server-start.sh")
    home = os.environ.get("KAFKA_HOME") or (script and Path(script).resolve().parents[1])
    libs = Path(home or "/nowhere") / "libs"
    return libs if libs.is_dir() else None


def _installed_jaeger() -> Path | None:
    found = shutil.which("jaeger")
    return Path(found) if found else None


KAFKA = Service(
    "kafka",
    "4.4.0",
    "libs",
    {"java": "a Java runtime, version 17 or newer", "mvn": "Apache Maven"},
    "some seconds",
    _make_kafka,
    _installed_kafka,
)
JAEGER = Service(
    "jaeger",
    "v1.76.0",  # of the Go module; the program calls itself 2.13
    "jaeger",
    {"go": "Go"},
    "about 4 minutes",
    _make_jaeger,
    _installed_jaeger,
)
SERVICES = (JAEGER, KAFKA)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch all services, or those that are named; return 1 if one could not be had."""
    names = [service.name for service in SERVICES]
    parser = argparse.ArgumentParser(prog="python -m tests.gear.fetch", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"which ones, of {', '.join(names)}")
    parser.add_argument(
        "--where-possible", action="store_true", help="succeed without what cannot be had here"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.name) - set(names):
        parser.error(f"no such service: {', '.join(sorted(unknown))}; there are {names}")
    wanted = [s for s in SERVICES if s.name in (options.name or names)]
    with ThreadPoolExecutor() as pool:  # one waits for the network while another compiles
        had = list(pool.map(_had, wanted))
    return int(not (options.where_possible or all(had)))


def _had(service: Service) -> bool:
    try:
        fetch(service)
    except Unavailable as exc:
        print(f"{service.name} cannot be had, so its tests cannot run: {exc}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
