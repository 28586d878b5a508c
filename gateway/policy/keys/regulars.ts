/** The keys `newcomers` of a policy, and `regulars` of the file: which clients are regulars. */
import type { XStatic } from 'typebox/schema';
import type { Identifier } from '#gateway/identity/identifier.ts';
import { HISTORY_DAYS } from '#gateway/policy/groups.ts';
import type { Path, Report } from '#gateway/policy/problems.ts';
import { isNewcomers, type Newcomers, newcomersBy } from '#gateway/policy/regulars.ts';
import { isoTime } from '#shared/clock.ts';
import type { IdentifierTable } from './identifiers.ts';
import { fileKey, policyKey } from './key.ts';
import { type NetworkLoader, networkName } from './networks.ts';
import { algorithm, burst, window } from './quota-keys.ts';
import { fileName, LIMIT, list, object, some, whole } from './schema-parts.ts';

export const newcomers = policyKey({
  schema: object(
    ['limit', 'window'],
    { limit: LIMIT, window: window.schema, algorithm: algorithm.schema, burst: burst.schema },
    'a limit for all clients together who are not regulars, such as { limit: 200, window: 1m }',
  ),
  see: '#regulars-first',
  counted: ({ onlyFor }) => isNewcomers(onlyFor),
  explain: ({ onlyFor }, canBeRegular) =>
    isNewcomers(onlyFor) ? newcomersText(onlyFor, canBeRegular) : null,
});

function newcomersText({ visits, days, actsFrom }: Newcomers, canBeRegular: boolean): string {
  const until =
    actsFrom === null
      ? ''
      : actsFrom === 'unknown'
        ? '; it does not act before the store tells since when clients are known'
        : `; it acts from ${isoTime(actsFrom)}, when enough history exists`;
  const why = canBeRegular
    ? `not counted once the client is a regular, with good replies on ${visits} different days within ${days}`
    : 'its network is under regulars.never, so it never becomes a regular';
  return why + until;
}

export const regulars = fileKey({
  schema: object(
    [],
    {
      visits: whole(2, 10, 'on how many different days a client needs good replies'),
      days: whole(
        2,
        HISTORY_DAYS,
        'within how many days, before a client that stays away is a newcomer again',
      ),
      keys: list(
        { type: 'string' },
        8,
        'a list of at most 8 identifiers whose proven keys are regulars at once, such as [apiKey]',
      ),
      never: object(
        ['network'],
        {
          network: {
            ...fileName,
            description: 'the name of a file in the same folder, with one network and its name a line',
          },
          name: some(networkName, 1000, 'a list of names in that file, such as [AS64500]; all unless given'),
        },
        'networks whose addresses never become regulars, such as { network: hosting.txt }',
      ),
      newPerDay: whole(1, 10_000_000, 'how many new clients a day are remembered at most'),
    },
    'which clients are regulars for policies with newcomers, such as { visits: 2, days: 30, keys: [apiKey] }',
  ),
  without: '`{ visits: 2, days: 30, newPerDay: 250000 }`',
  see: '#regulars-first',
});

/** The keys belong to no route. */
const ANYWHERE = { route: null, hosts: undefined };
const KIND_OF_KEYS = 'name an identifier with a header, bearer token, cookie, query parameter or jwt';

/** Reads the key `regulars`, which refers to identifiers and to a file of networks. */
export function regularsOf(
  written: XStatic<typeof regulars.schema> | undefined,
  identifiers: IdentifierTable,
  networks: NetworkLoader,
  report: Report,
): Newcomers {
  const { visits = 2, days = 30, newPerDay = 250_000, never } = written ?? {};
  const here: Path = ['regulars'];
  if (visits > days)
    report([...here, 'visits'], `${visits} different days do not fit into ${days}`, 'write larger days');
  const keys = (written?.keys ?? []).flatMap((name, i): Identifier[] => {
    const at = [...here, 'keys', i];
    const identifier = identifiers.isOfPolicy(name) ? undefined : identifiers.named(name, ANYWHERE, at);
    if (identifier === null) return [];
    if (identifier?.kind === 'credential' || identifier?.kind === 'token') return [identifier];
    report(at, `${name} is no credential`, KIND_OF_KEYS);
    return [];
  });
  return newcomersBy({ visits, days, newPerDay, keys, never: neverOf(never, networks, here) });
}

type Never = XStatic<typeof regulars.schema>['never'];

function neverOf(written: Never, networks: NetworkLoader, here: Path): Newcomers['never'] {
  if (written === undefined) return null;
  const { network } = written;
  const file = networks.of(network, [...here, 'never', 'network']);
  const names = written.name === undefined ? null : new Set(written.name.map(String));
  networks.expect(network, names ?? [], [...here, 'never', 'name']);
  return (address) => {
    const name = file.find(address);
    return name !== undefined && (names === null || names.has(name));
  };
}
