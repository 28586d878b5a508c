/** Whom a command is about: an address, a key or a digest. */
import type { Inspected } from '#gateway/admin/inspect.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import { ADMIN_OPTIONS, askAdmin } from './admin-client.ts';
import type { CommandContext } from './command.ts';

/** Options of every command about one identity. */
export const SUBJECT_OPTIONS = {
  address: { type: 'string', describe: 'An address, to be sure that it is taken for one' },
  key: { type: 'string', describe: 'A key, to be sure that it is taken for one' },
  digest: { type: 'string', describe: 'A digest, to be sure that it is taken for one' },
  identifier: {
    type: 'string',
    describe: 'Identifier of the policy file, where it has several for keys',
  },
  ...ADMIN_OPTIONS,
} as const;

export const SUBJECT_TEXT = 'An address, a digest, or else a key';

export interface SubjectArguments {
  readonly subject: string | undefined;
  readonly address: string | undefined;
  readonly key: string | undefined;
  readonly digest: string | undefined;
  readonly identifier: string | undefined;
  readonly gateway: string;
  readonly token: string | undefined;
}

/** @param path such as /api/inspect @throws CommandError */
export async function askAbout<T extends Inspected>(
  options: SubjectArguments,
  { env }: CommandContext,
  path: string,
  more: object = {},
): Promise<T> {
  const { gateway, identifier } = options;
  const access = { gateway, token: options.token ?? env.GATEWAY_ADMIN_TOKEN };
  return (await askAdmin(access, 'POST', path, { ...subjectOf(options), identifier, ...more })) as T;
}

function subjectOf({ subject, address, key, digest }: SubjectArguments): {
  readonly subject: string;
  readonly kind?: string;
} {
  const given = Object.entries({ address, key, digest }).filter(([, value]) => value !== undefined);
  const [first] = given;
  if (first === undefined && subject !== undefined && subject !== '') return { subject };
  // `inspect 192.0.2.1 --key` says the same as `inspect --key 192.0.2.1`.
  const [kind = '', value = ''] = first ?? [];
  const text = value === '' ? (subject ?? '') : value;
  if (given.length !== 1 || text === '' || (value !== '' && subject !== undefined))
    throw new CommandError('name one address, key or digest; --help has an example', EXIT.usage);
  return { subject: text, kind };
}

export function printInspected({ identity, buckets, ban }: Inspected, terminal: Terminal): void {
  const reason = ban === null || ban.reason === '' ? '' : ` (${ban.reason})`;
  const state = ban === null ? 'not banned' : terminal.style('red', `banned until ${ban.until}${reason}`);
  terminal.line(`${identity}: ${state}`);
  terminal.line();
  if (buckets.length === 0) {
    terminal.line('No bucket holds anything in its current window.');
    return;
  }
  terminal.table(
    ['policy', 'used', 'limit', 'resets at', ''],
    buckets.map(({ policy, used, limit, resetAt, unproven }) => [
      policy,
      used,
      limit,
      resetAt,
      unproven ? 'on keys not known to work' : '',
    ]),
  );
}
