/** Runs a server of the bench in one process or in several. */
import cluster from 'node:cluster';

/** Runs `serve` in this process, or in several workers on one port. Prints `ready` when all of them listen. */
export async function serveWith(workers: number, serve: () => Promise<unknown>): Promise<void> {
  if (cluster.isWorker || workers === 1) {
    await serve();
    if (cluster.isPrimary) console.log('ready');
    return;
  }
  let listening = 0;
  cluster.on('listening', () => {
    listening += 1;
    if (listening === workers) console.log('ready');
  });
  cluster.on('exit', () => process.exit(1));
  for (let i = 0; i < workers; i++) cluster.fork();
}
