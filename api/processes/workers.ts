/** How many processes serve the API, and what each of them tells the one that started it. */
import type { SettingsReader } from '#shared/configuration.ts';

export const workerVariables = [
  {
    name: 'API_WORKERS',
    default: '1',
    meaning:
      'number of processes that share the port, or `auto` for one for each core; a process that dies is replaced. More than one needs a database that is not in memory',
  },
] as const;

const WORKERS_MAX = 64;

export function readWorkers(
  read: Pick<SettingsReader<'API_WORKERS'>, 'text' | 'integer' | 'refuse'>,
  { cores, hasSharedDatabase }: { readonly cores: number; readonly hasSharedDatabase: boolean },
): number {
  if (read.text('API_WORKERS') === 'auto') return hasSharedDatabase ? Math.min(cores, WORKERS_MAX) : 1;
  const workers = read.integer('API_WORKERS', 1, WORKERS_MAX);
  if (workers > 1 && !hasSharedDatabase) {
    read.refuse('API_WORKERS', 'a database in memory is that of one process; set DATABASE_URL to a file');
  }
  return workers;
}

/** The process serves: its port is open, and the credentials of a first start are there. */
export interface ReadyMessage {
  readonly kind: 'ready';
  /** Where it listens, such as `http://127.0.0.1:3000`. */
  readonly address: string;
  /** What the operator reads once, at the first start. */
  readonly notice: string | null;
}
