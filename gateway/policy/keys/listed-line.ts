/** Reads a line of a file of networks and programs, in the forms in which other projects publish such lists. */
import type { ClientName } from '#gateway/policy/clients.ts';
import { Mistake } from '#gateway/policy/problems.ts';
import { programPhrase } from '#gateway/policy/user-agent.ts';
import { CLIENTS } from './named-clients.ts';

/** A network and a number, such as how often its clients attacked. */
const WITH_NUMBER = /^(\S*[.:]\S*)\s+\d+$/;
/** A mistyped network with a letter among its digits. */
const LIKE_NETWORK = /^\d\w*(?:\.\w+)+\/\d+$/;

/** @throws Mistake */
export function listedClient(line: string, mayNamePrograms: boolean): ClientName {
  const program = mayNamePrograms && !LIKE_NETWORK.test(line) ? programPhrase(line) : null;
  if (program !== null) return { kind: 'program', name: program };
  const [, network = line] = WITH_NUMBER.exec(line) ?? [];
  try {
    return CLIENTS.address(network);
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    const what = mayNamePrograms ? `${error.what}, nor the name of a program` : error.what;
    throw new Mistake(what, `${error.fix}, or let the list skip such lines with lenient: true`);
  }
}
