# A CPU agent: the harness, the workloads and git. Build from the root of the repository.
FROM python:3.13.9-slim-trixie AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /source
RUN python -m venv /opt/pullback
COPY requirements.lock .
RUN /opt/pullback/bin/pip install --require-hashes -r requirements.lock
COPY . .
RUN /opt/pullback/bin/pip install --no-deps --no-build-isolation . && /opt/pullback/bin/python -m compileall -q /opt/pullback/lib

FROM python:3.13.9-slim-trixie
RUN apt-get update && apt-get install --yes --no-install-recommends bubblewrap git && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 pullback && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin pullback \
    && install --directory --owner=10001 --group=10001 /var/lib/pullback
COPY --from=build /opt/pullback /opt/pullback
# Jobs run in a sandbox, which the engine has to allow (docker-compose.yml): where it does not, the agent says so and ends.
ENV PATH=/opt/pullback/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PULLBACK_ISOLATION=sandbox
USER 10001:10001
VOLUME /var/lib/pullback
WORKDIR /var/lib/pullback
ENTRYPOINT ["pullback"]
CMD ["agent", "--help"]
