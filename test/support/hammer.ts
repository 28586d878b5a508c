/** Generates load with clients that send the next request as soon as they have the reply. */
import { Agent, get } from 'node:http';

interface Hammer {
  /** Requests that got no complete reply, or another one than 200, as the reason. */
  readonly broken: readonly string[];
  /** Number of whole replies so far. */
  answered(): number;
  /** Resolves when the port is closed, or after `stop`. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

interface HammerOptions {
  /**
   * Opens a connection for each request, and tries it so often. What the kernel has queued for a gateway that closes its
   * port is reset unless net.ipv4.tcp_migrate_req is set (Linux 5.14), which a test must not do to its machine. By
   * default each client keeps its connection, and ends if the kernel takes no other one.
   */
  readonly triesOneByOne?: number;
  /** Other statuses than 200 are replies too. */
  readonly anyStatus?: boolean;
}

/** The kernel had queued a connection that the listener never accepted. */
const NOT_TAKEN = Symbol('not taken');

export function hammer(
  port: number,
  path: string,
  clients: number,
  { triesOneByOne, anyStatus = false }: HammerOptions = {},
): Hammer {
  const broken: string[] = [];
  let answered = 0;
  let stopped = false;
  const keepAlive = triesOneByOne === undefined;

  const ask = (agent: Agent): Promise<number | string | typeof NOT_TAKEN> =>
    new Promise((resolve) => {
      const req = get({ host: '127.0.0.1', port, path, agent }, (res) => {
        res.on('end', () => resolve(res.complete ? (res.statusCode ?? 0) : 'cut off'));
        res.on('error', (error) => resolve(error.message));
        res.resume();
      });
      req.on('error', ({ code }: NodeJS.ErrnoException) => {
        const isFresh =
          !req.reusedSocket && (code === 'ECONNRESET' || (keepAlive && code === 'ECONNREFUSED'));
        resolve(isFresh ? NOT_TAKEN : `${code} on a connection in use`);
      });
    });
  const client = async (): Promise<void> => {
    const agent = new Agent({ keepAlive, maxSockets: 1 });
    for (let left = triesOneByOne ?? 1; !stopped; ) {
      const outcome = await ask(agent);
      if (outcome === NOT_TAKEN) {
        left--;
        if (left > 0) continue;
        if (keepAlive) break;
        broken.push('reset');
      } else if (outcome === 200 || (anyStatus && typeof outcome === 'number')) answered++;
      else broken.push(String(outcome));
      left = triesOneByOne ?? 1;
    }
    agent.destroy();
  };
  const ended = Promise.all(Array.from({ length: clients }, client)).then(() => undefined);
  return {
    broken,
    answered: () => answered,
    ended,
    stop() {
      stopped = true;
      return ended;
    },
  };
}
