/** Generates load with keep-alive clients that send the next request as soon as they have the reply. */
import { Agent, get } from 'node:http';

interface Hammer {
  /** Number of whole replies so far, by status. */
  readonly answers: ReadonlyMap<number, number>;
  /** Requests that were sent on an open connection and got no complete reply. */
  readonly broken: readonly string[];
  answered(): number;
  /** Resolves when the port is closed, or after `stop`. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** The kernel had queued a connection that the listener never accepted. */
const NOT_TAKEN = Symbol('not taken');

export function hammer(
  port: number,
  path: string,
  clients: number,
  headers: Record<string, string> = {},
): Hammer {
  const answers = new Map<number, number>();
  const broken: string[] = [];
  let stopped = false;

  const ask = (agent: Agent): Promise<number | string | typeof NOT_TAKEN> =>
    new Promise((resolve) => {
      const req = get({ host: '127.0.0.1', port, path, agent, headers }, (res) => {
        res.on('end', () => resolve(res.complete ? (res.statusCode ?? 0) : 'cut off'));
        res.on('error', (error) => resolve(error.message));
        res.resume();
      });
      req.on('error', (error: NodeJS.ErrnoException) => {
        const fresh = !req.reusedSocket && (error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET');
        resolve(fresh ? NOT_TAKEN : `${error.code} on a connection in use`);
      });
    });
  const client = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!stopped) {
      const outcome = await ask(agent);
      if (outcome === NOT_TAKEN) break;
      if (typeof outcome === 'string') broken.push(outcome);
      else answers.set(outcome, (answers.get(outcome) ?? 0) + 1);
    }
    agent.destroy();
  };
  const ended = Promise.all(Array.from({ length: clients }, client)).then(() => undefined);
  return {
    answers,
    broken,
    answered: () => answers.values().reduce((sum, n) => sum + n, 0),
    ended,
    stop() {
      stopped = true;
      return ended;
    },
  };
}
