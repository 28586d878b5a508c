# One image for both services; docker-compose.yml says which one a container runs.
# There is no build stage, because Node runs TypeScript directly: install production dependencies, copy the sources.
FROM node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY package/command ./package/command
RUN npm ci --omit=dev --no-audit --no-fund && npm cache clean --force

FROM node:26-slim
ENV NODE_ENV=production
# Cache of compiled code: later starts of the container take half the time and 20 MB less.
ENV NODE_COMPILE_CACHE=/tmp/node-compile-cache
WORKDIR /app
# The files belong to root, so the service can write only to its data folder.
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json start.ts ./
COPY config/policies.yaml ./policies.yaml
COPY package/command ./package/command
COPY gateway ./gateway
COPY api ./api
COPY shared ./shared
COPY examples ./examples
RUN mkdir data && chown node:node data
VOLUME /app/data
USER node
EXPOSE 8080
# Starts both services. Exec form, so that signals reach the program.
CMD ["node", "start.ts"]
