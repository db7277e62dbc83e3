# The image ghcr.io/leakgate/leakgate: leakgate, adb to start the adb server with, git for baselines in a branch.
#
#     docker run --rm --network host --user "$(id -u)" -v "$PWD:/work" ghcr.io/leakgate/leakgate run leakgate.yaml
#
# uses the adb server of the host and writes the run directory into the current directory.
# Goreleaser arranges the binaries by platform: linux/amd64/leakgate, linux/arm64/leakgate.
FROM debian:trixie-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends adb ca-certificates git \
 && rm -rf /var/lib/apt/lists/*

ARG TARGETPLATFORM
COPY $TARGETPLATFORM/leakgate /usr/local/bin/leakgate

# Runs as root, because CI systems expect that of a job's image; HOME is writable for any --user.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["leakgate"]
