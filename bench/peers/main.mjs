/** Runs one peer in as many processes as asked for, all on one port. */
import cluster from 'node:cluster';
import { pathToFileURL } from 'node:url';

export const settings = {
  port: Number(process.env.PEER_PORT),
  upstream: process.env.PEER_UPSTREAM,
  redisPort: Number(process.env.PEER_REDIS_PORT),
  limit: Number(process.env.PEER_LIMIT),
  /** How many limits a request counts against. */
  limits: Number(process.env.PEER_LIMITS),
  windowSeconds: Number(process.env.PEER_WINDOW_SECONDS),
};
const workers = Number(process.env.PEER_WORKERS);

if (cluster.isPrimary && workers > 1) {
  for (let i = 0; i < workers; i++) cluster.fork();
  const stop = () => {
    for (const worker of Object.values(cluster.workers)) worker.kill('SIGKILL');
    process.exit(0);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
} else {
  const { start } = await import(pathToFileURL(process.argv[2]).href);
  await start(settings);
  process.on('SIGTERM', () => process.exit(0));
}
