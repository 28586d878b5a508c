/**
 * All abuse scenarios. As a program (`node scenarios.ts SCENARIO PORT SECONDS`) it runs one attack and reports counts.
 */
import { constants, setPriority } from 'node:os';
import { Attacker } from './attacker.ts';
import { BODIES } from './attacks/bodies.ts';
import { CONNECTIONS } from './attacks/connections.ts';
import { HOARDING } from './attacks/hoarding.ts';
import { IDENTITIES } from './attacks/identities.ts';
import { LIMITS } from './attacks/limits.ts';
import { REQUESTS } from './attacks/requests.ts';
import type { AbuseScenario } from './scenario.ts';
import { SWARM } from './swarm.ts';

export const SCENARIOS: readonly AbuseScenario[] = [
  ...[...REQUESTS, ...BODIES, ...HOARDING, ...CONNECTIONS, ...IDENTITIES, ...LIMITS, SWARM],
];

if (import.meta.main) {
  const [name, port, seconds] = process.argv.slice(2);
  // A real attacker is another machine. Here it must not take CPU time from the servers that it attacks.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const attacker = new Attacker(Number(port));
  const end = (): void => {
    attacker.stop();
    process.stdout.write(`${JSON.stringify(attacker.counts)}\n`, () => process.exit(0));
  };
  process.once('SIGTERM', end);
  setTimeout(end, Number(seconds) * 1000);
  SCENARIOS.find((candidate) => candidate.name === name)?.attack(attacker);
  process.stdout.write('attacking\n');
}
