# The image ghcr.io/leakgate/leakgate: leakgate, adb to start the adb server with, git for baselines in a branch.
#
#     docker run --rm --network host --user "$(id -u)" -v "$PWD:/work" ghcr.io/leakgate/leakgate run leakgate.yaml
#
# talks to the adb server of the host and writes the run directory into the current folder.
# Goreleaser lays the binaries out by platform: linux/amd64/leakgate, linux/arm64/leakgate.
FROM debian:trixie-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends adb ca-certificates git \
 && rm -rf /var/lib/apt/lists/*

ARG TARGETPLATFORM
COPY $TARGETPLATFORM/leakgate /usr/local/bin/leakgate

# Runs as root, as CI systems expect of the image of a job; HOME is writable for any --user.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["leakgate"]
