# One image for the api, the worker and the migrations: ROLES and the command say which.

FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:22-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# The optional packages are the programs of the embedded PostgreSQL: production has a PostgreSQL of its own.
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund

FROM node:22-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
COPY bin bin
COPY prisma/migrations prisma/migrations
USER node
EXPOSE 3000
CMD ["node", "--enable-source-maps", "dist/src/main.js"]
