/** Reads a line of a file of networks and programs, in the forms in which other projects publish such lists. */
import { Mistake } from '#gateway/policy/problems.ts';
import { programPhrase } from '#gateway/policy/user-agent.ts';
import type { Network } from '#shared/client-address.ts';
import { networkOf } from './named-clients.ts';

type ListedLine = { readonly network: Network } | { readonly program: string };

const COMMENT = /[;#].*$/;
/** A network and a number, such as how often its clients attacked. */
const WITH_NUMBER = /^(\S*[.:]\S*)\s+\d+$/;
/** A mistyped network with a letter among its digits. */
const LIKE_NETWORK = /^\d\w*(?:\.\w+)+\/\d+$/;

/**
 * @returns null if the line has only a comment
 * @throws Mistake
 */
export function readListedLine(line: string, mayNamePrograms: boolean): ListedLine | null {
  const text = line.replace(COMMENT, '').trim();
  if (text === '') return null;
  const program = mayNamePrograms && !LIKE_NETWORK.test(text) ? programPhrase(text) : null;
  if (program !== null) return { program };
  const [, network = text] = WITH_NUMBER.exec(text) ?? [];
  try {
    return { network: networkOf(network) };
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    const what = mayNamePrograms ? `${error.what}, nor the name of a program` : error.what;
    throw new Mistake(what, `${error.fix}, or let the list skip such lines with lenient: true`);
  }
}
