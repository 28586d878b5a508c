/** Reads how the policy file and its lists name clients: by digest, network or program. */
import type { ClientName } from '#gateway/policy/clients.ts';
import { Mistake } from '#gateway/policy/problems.ts';
import { PROGRAM_NAME } from '#gateway/policy/user-agent.ts';
import { type Network, parseNetwork } from '#shared/client-address.ts';

const DIGEST = /^[A-Za-z0-9_-]{22}$/;

/** The client of each key under which the policy file names one. They throw a Mistake. */
export const CLIENTS = {
  address: (text: string): ClientName => ({ kind: 'network', network: networkOf(text) }),
  digest: (text: string): ClientName => {
    if (!DIGEST.test(text))
      throw new Mistake(
        `"${text.slice(0, 60)}" is not a digest`,
        'write the 22 characters that the access log and floodgate explain show as identity',
      );
    return { kind: 'digest', name: text };
  },
  userAgent: (text: string): ClientName => ({ kind: 'program', name: programName(text) }),
} as const;

/** Reads a client in a line of a file that may have either. @throws Mistake */
export function digestOrNetwork(text: string): ClientName {
  return DIGEST.test(text) ? CLIENTS.digest(text) : CLIENTS.address(text);
}

/** @returns the name in lower case. @throws Mistake */
export function programName(text: string): string {
  if (!PROGRAM_NAME.test(text))
    throw new Mistake(
      `"${text.slice(0, 60)}" is not the name of a program`,
      'write one word of its User-Agent, such as GPTBot',
    );
  return text.toLowerCase();
}

/** @throws Mistake */
export function networkOf(text: string): Network {
  try {
    return parseNetwork(text);
  } catch (error) {
    throw new Mistake(
      (error as Error).message,
      'write an address or a network such as 10.0.0.0/8 or 2001:db8::/32',
    );
  }
}
