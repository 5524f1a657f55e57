# One image for the api, the worker and the migrations: ROLES and the command say which.

# By its digest in production, as .env.example says: a tag may be another image tomorrow.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# --omit=dev alone keeps Prisma's tools and TypeScript, 240 MB, because packages of the service name them as optional.
RUN npm ci --ignore-scripts --omit=dev --omit=optional --no-audit --no-fund

FROM ${NODE_IMAGE}
ARG NODE_IMAGE
# The commit: docker build --build-arg REVISION="$(git rev-parse HEAD)" .
ARG REVISION=unknown
LABEL org.opencontainers.image.title="notebridge" \
      org.opencontainers.image.description="Connects an EHR to a third-party therapy-notes platform" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${NODE_IMAGE}"
# Two arenas of glibc instead of eight per core: freed bodies of requests are reused, which saves 90 MiB under load.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
# The service and its console; the simulator, the demo and what tests them stay behind.
COPY --from=build /app/dist/src dist/src
COPY --from=build /app/dist/console dist/console
COPY package.json ./
COPY bin bin
COPY prisma/migrations prisma/migrations
COPY prisma/roles.sql prisma/roles.sql
# The user node, by number: Kubernetes cannot tell whether a name is root (runAsNonRoot).
USER 1000:1000
EXPOSE 3000
# Docker and Compose only show the result. A supervisor that restarts what is unhealthy should ask /health/live instead:
# a restart does not bring back a database that is down.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "--eval", "fetch('http://127.0.0.1:' + process.env.PORT + '/health/ready').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--enable-source-maps", "dist/src/main.js"]
