/** Runs one peer in as many processes as asked for, all on one port. */
import { serveWith } from '../../run/workers.ts';

const settings = JSON.parse(process.argv[2]);
await serveWith(settings.workers, async () => {
  const { start } = await import(`./${settings.name}.mjs`);
  await start(settings);
});
process.on('SIGTERM', () => process.exit(0));
