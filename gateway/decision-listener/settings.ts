import type { ProxyTrust } from '#shared/client-address.ts';
import type { SettingsReader, Variable } from '#shared/configuration.ts';

export type DecisionSettings = NonNullable<ReturnType<typeof readDecisionSettings>>;

export const DECISION_VARIABLES = [
  {
    name: 'GATEWAY_DECISION_PORT',
    default: 'off',
    meaning:
      'TCP port for [proxies that ask](behind-another-proxy.md) the gateway about each request; or `off`',
  },
  {
    name: 'GATEWAY_DECISION_HOST',
    default: '127.0.0.1',
    meaning: 'address of the decision port; clients must not be able to reach it',
  },
  {
    name: 'GATEWAY_DECISION_CREDENTIALS',
    default: 'unproven',
    meaning:
      '`unproven`: an API key is also charged to its client address; `proven`: the proxy has [checked the key](behind-another-proxy.md#keys)',
  },
] as const satisfies readonly Variable[];

type DecisionName = (typeof DECISION_VARIABLES)[number]['name'];

const PORT = 'GATEWAY_DECISION_PORT';
const CREDENTIALS = ['unproven', 'proven'] as const;

export function readDecisionSettings<Name extends string>(
  read: SettingsReader<Name | DecisionName>,
  trust: ProxyTrust,
  taken: Set<number>,
) {
  // Whether the proxy has already checked the credentials, so that they count as proven.
  const isCredentialProven = read.choice('GATEWAY_DECISION_CREDENTIALS', CREDENTIALS) === 'proven';
  if (read.text(PORT).toLowerCase() === 'off') return null;
  const port = read.integer(PORT, 1, 65_535);
  // Workers share their ports, so the operating system would not report the conflict.
  if (taken.has(port)) read.refuse(PORT, `port ${port} is used by another listener; choose another one`);
  taken.add(port);
  if (trust.kind === 'none') {
    read.refuse(
      PORT,
      'name the proxies that use it in GATEWAY_TRUSTED_PROXIES; otherwise all clients count as one',
    );
  }
  return { host: read.text('GATEWAY_DECISION_HOST'), port, isCredentialProven };
}
