/** Reads how the policy file and its lists name clients: by digest, network, plan or program. */
import { type ClientName, type ClientTable, PLAN } from '#gateway/policy/clients.ts';
import { Mistake } from '#gateway/policy/problems.ts';
import { programPhrase } from '#gateway/policy/user-agent.ts';
import { type Network, parseNetwork } from '#shared/client-address.ts';

const DIGEST = /^[A-Za-z0-9_-]{22}$/;

/** The client of each key under which the policy file names one. They throw a Mistake. */
export const CLIENTS = {
  address: (text: string): ClientName => ({ kind: 'network', network: networkOf(text) }),
  digest: (text: string): ClientName => {
    const fix = 'write the 22 characters that the access log and floodgate explain show as identity';
    return { kind: 'digest', name: matching(DIGEST, text, 'a digest', fix) };
  },
  plan: (text: string): ClientName => {
    const fix = 'write letters, digits, dots, dashes and underscores, at most 64';
    return { kind: 'plan', name: matching(PLAN, text, 'a plan name', fix) };
  },
  userAgent: (text: string): ClientName => ({ kind: 'program', name: programName(text) }),
} as const;

export type Kind = keyof typeof CLIENTS;
export const KINDS = Object.keys(CLIENTS) as readonly Kind[];

/** Names a client once. @throws Mistake */
export function nameClient<T extends NonNullable<unknown>>(
  table: ClientTable<T>,
  kind: Kind,
  text: string,
  value: T,
): void {
  if (!table.add(CLIENTS[kind](text), value))
    throw new Mistake(`${kind} ${text} appears twice`, 'keep one of them');
}

/** The kind of a client in a line of a file that may have either. */
export function digestOrAddress(text: string): Kind {
  return DIGEST.test(text) ? 'digest' : 'address';
}

/** @returns the name in lower case. @throws Mistake */
export function programName(text: string): string {
  const name = programPhrase(text);
  if (name !== null && name.length === text.length && !name.includes(' ')) return name;
  const fix = 'write one word of its User-Agent, such as GPTBot';
  throw new Mistake(`"${text.slice(0, 60)}" is not the name of a program`, fix);
}

/** @throws Mistake */
export function networkOf(text: string): Network {
  try {
    return parseNetwork(text);
  } catch (error) {
    const fix = 'write an address or a network such as 10.0.0.0/8 or 2001:db8::/32';
    throw new Mistake((error as Error).message, fix);
  }
}

function matching(pattern: RegExp, text: string, what: string, fix: string): string {
  if (pattern.test(text)) return text;
  throw new Mistake(`"${text.slice(0, 60)}" is not ${what}`, fix);
}

/** A network and a number, such as how often its clients attacked. */
const WITH_NUMBER = /^(\S*[.:]\S*)\s+\d+$/;
/** A mistyped network with a letter among its digits. */
const LIKE_NETWORK = /^\d\w*(?:\.\w+)+\/\d+$/;

/**
 * Reads a line of a file of networks and programs, in the forms in which other projects publish such lists.
 *
 * @throws Mistake
 */
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
