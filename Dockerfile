# One image for the api, the worker and the migrations: ROLES and the command say which.

# By its digest in production, as .env.example says: a tag may be another image tomorrow.
ARG NODE_IMAGE=node:22-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# The optional packages are the programs of the embedded PostgreSQL: production has a PostgreSQL of its own.
RUN npm ci --ignore-scripts --omit=dev --omit=optional --no-audit --no-fund

FROM ${NODE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
# The service and its console; the simulator, the demo and what tests them stay behind.
COPY --from=build /app/dist/src dist/src
COPY --from=build /app/dist/console dist/console
COPY package.json ./
COPY bin bin
COPY prisma/migrations prisma/migrations
COPY prisma/roles.sql prisma/roles.sql
USER node
EXPOSE 3000
CMD ["node", "--enable-source-maps", "dist/src/main.js"]
