# The command `rayling` in an image: an agent, a driver, or a server of rewards.
#
#   docker build -t rayling .
#   docker run --rm -v "$PWD:/work" rayling score solutions.jsonl --reward ./reward.ts
#
# docs/containers.md has the rest.

FROM node:24-bookworm-slim AS packed
WORKDIR /source
COPY . .
RUN npx -y pnpm@12 install --frozen-lockfile \
  && npx -y pnpm@12 --recursive --filter "./packages/*" pack --pack-destination /packed

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /opt/rayling
COPY --from=packed /packed /packed
# Modules anywhere in the image find the packages in /node_modules.
RUN npm install --no-audit --no-fund --omit=dev /packed/*.tgz \
  && ln -s /opt/rayling/node_modules /node_modules \
  && ln -s /node_modules/.bin/rayling /usr/local/bin/rayling \
  && npm cache clean --force \
  && rm -rf /packed \
  && mkdir /work /home/node/.rayling \
  && chown 1000:1000 /work /home/node/.rayling
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["rayling"]
CMD ["--help"]
