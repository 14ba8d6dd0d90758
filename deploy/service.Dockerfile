# API, pages, worker and migrations: one image, four commands. Build from the root of the repository.
FROM python:3.13.9-slim-trixie AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /source
RUN python -m venv /opt/pullback
# The lock changes less often than the source: its layer is kept.
COPY requirements.lock .
RUN /opt/pullback/bin/pip install --require-hashes -r requirements.lock
COPY . .
RUN /opt/pullback/bin/pip install --no-deps --no-build-isolation . && /opt/pullback/bin/python -m compileall -q /opt/pullback/lib

FROM python:3.13.9-slim-trixie
RUN groupadd --gid 10001 pullback && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin pullback
COPY --from=build /opt/pullback /opt/pullback
ENV PATH=/opt/pullback/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
ENTRYPOINT ["pullback"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
