/** The attacker's process: `node attack.ts SCENARIO PORT SECONDS`. It prints what it did as one line of JSON. */
import { constants, setPriority } from 'node:os';
import { Attacker } from './attacker.ts';
import { SCENARIOS } from './scenarios.ts';

const [name, port, seconds] = process.argv.slice(2);
const scenario = SCENARIOS.find((candidate) => candidate.name === name);
if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
// In reality it is another machine. Here it must not take the cores from its victims.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
const attacker = new Attacker(Number(port));

const end = (): void => {
  attacker.stop();
  process.stdout.write(`${JSON.stringify(attacker.counts)}\n`, () => process.exit(0));
};
process.once('SIGTERM', end);
setTimeout(end, Number(seconds) * 1000);
scenario.attack(attacker);
process.stdout.write('attacking\n');
