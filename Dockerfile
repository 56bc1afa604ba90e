# The image of a node: one static program and three empty directories.
#
#   docker build --build-arg VERSION=$(git describe --tags --always) -t flaked .
#   docker run --rm -p 127.0.0.1:7609:7609 flaked serve --dev --listen 0.0.0.0:7609 --allow-open
#
# The image has no shell, no libc and no list of certificate authorities: TLS to ZooKeeper
# needs --zk-tls-ca. docs/deploy.md says what else a node needs.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The image contains the directories of the state and of unix sockets, so that a new volume
# mounted on one of them gets its owner and its mode: a node refuses a state directory that
# others may enter. --dev keeps its state in /tmp.
RUN mkdir -p /image/usr/local/bin /image/var/lib/flaked /image/run/flaked /image/tmp && chmod 700 /image/var/lib/flaked
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /image/usr/local/bin/flaked ./cmd/flaked

FROM scratch
COPY --from=build --chown=65532:65532 /image/ /
USER 65532:65532
ENV FLAKED_STATE_DIR=/var/lib/flaked
EXPOSE 7609 7610
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s CMD ["/usr/local/bin/flaked", "healthcheck"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/flaked"]
CMD ["serve"]
