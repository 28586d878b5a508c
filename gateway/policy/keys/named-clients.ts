/** Reads how the policy file and its lists name clients: by digest, network or program. */
import { Mistake } from '#gateway/policy/problems.ts';
import { PROGRAM_NAME } from '#gateway/policy/user-agent.ts';
import { parseNetwork } from '#shared/client-address.ts';

export const DIGEST = /^[A-Za-z0-9_-]{22}$/;

/** @returns the name in lower case */
export function programName(text: string): string {
  if (!PROGRAM_NAME.test(text))
    throw new Mistake(
      `"${text.slice(0, 60)}" is not the name of a program`,
      'write one word of its User-Agent, such as GPTBot',
    );
  return text.toLowerCase();
}

export function networkOf(text: string): ReturnType<typeof parseNetwork> {
  try {
    return parseNetwork(text);
  } catch (error) {
    throw new Mistake(
      (error as Error).message,
      'write an address or a network such as 10.0.0.0/8 or 2001:db8::/32',
    );
  }
}
