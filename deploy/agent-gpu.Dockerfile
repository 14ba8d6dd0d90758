# A GPU agent: the CPU agent (agent.Dockerfile) with PyTorch, the CUDA libraries that come with it, and NVIDIA's binding for the driver.
# Build from the root of the repository, and run where the NVIDIA Container Toolkit is installed, which brings the driver's libraries:
#   docker build --file deploy/agent-gpu.Dockerfile --tag pullback-agent-gpu .
#   docker run --gpus 'device=GPU-…' --volume /run/lock:/run/lock --volume agent-gpu:/var/lib/pullback pullback-agent-gpu \
#     agent --server URL --label device=cuda --data /var/lib/pullback
# with the security options that the agent of docker-compose.yml has: jobs run in a sandbox there as well.
# Locks of devices are shared with whoever else measures on the host by its /run/lock, and processes of others are seen with --pid host.
FROM python:3.13.9-slim-trixie AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /source
RUN python -m venv /opt/pullback
COPY requirements.lock .
RUN /opt/pullback/bin/pip install --require-hashes -r requirements.lock
COPY . .
# The extra is not in the lock: which PyTorch fits depends on the machine's driver.
RUN /opt/pullback/bin/pip install --no-build-isolation '.[gpu]' && /opt/pullback/bin/python -m compileall -q /opt/pullback/lib

FROM python:3.13.9-slim-trixie
# g++ is for torch.compile.
RUN apt-get update && apt-get install --yes --no-install-recommends bubblewrap g++ git && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 pullback && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin pullback \
    && install --directory --owner=10001 --group=10001 /var/lib/pullback
COPY --from=build /opt/pullback /opt/pullback
# Of the driver CUDA and its management library: the first computes, the other tells devices, clocks and processes.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENV PATH=/opt/pullback/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PULLBACK_ISOLATION=sandbox
USER 10001:10001
VOLUME /var/lib/pullback
WORKDIR /var/lib/pullback
ENTRYPOINT ["pullback"]
CMD ["agent", "--help"]
