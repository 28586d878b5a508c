/** The settings of TLS, HTTP/2 and the PROXY protocol on the public listener. */
import { type KeyPair, type KeyPairFiles, readKeyPair } from '#gateway/listen/tls/key-pair.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { SettingsReader, Variable } from '#shared/configuration.ts';

export interface EntranceSettings {
  /** Files of the certificate; null if the public listener uses plain HTTP. */
  readonly tls: KeyPairFiles | null;
  /** Number of TLS handshakes that one client address may begin each second on average. */
  readonly handshakesPerClient: number;
  readonly isHttp2: boolean;
  /** Whether connections begin with a PROXY header. */
  readonly proxyProtocol: boolean;
  /** Whether the gateway reads plain requests itself, and node:http only the others. */
  readonly hasOwnParser: boolean;
}

export const ENTRANCE_VARIABLES = [
  {
    name: 'GATEWAY_TLS_CERT',
    default: '',
    meaning:
      'PEM file of the certificate, followed by its chain; the public listener then accepts HTTPS only',
  },
  { name: 'GATEWAY_TLS_KEY', default: '', meaning: 'PEM file of its private key, without a passphrase' },
  {
    name: 'GATEWAY_TLS_HANDSHAKES_PER_CLIENT',
    default: '50',
    meaning:
      'TLS handshakes that one client address may begin each second, and four times as many at once after a pause',
  },
  { name: 'GATEWAY_HTTP2', default: '0', meaning: '1 offers HTTP/2 in addition to HTTP/1.1; needs TLS' },
  {
    name: 'GATEWAY_PROXY_PROTOCOL',
    default: '0',
    meaning:
      '1: every connection must come from a proxy in `GATEWAY_TRUSTED_PROXIES` and begin with a header of the PROXY protocol, version 1 or 2',
  },
  {
    name: 'GATEWAY_OWN_PARSER',
    default: '1',
    meaning:
      '0: node:http reads all requests. By default the gateway reads plain ones itself, which is cheaper: HTTP/1.1 without TLS, a usual method, a body with `Content-Length` or none',
  },
] as const satisfies readonly Variable[];

type EntranceName = (typeof ENTRANCE_VARIABLES)[number]['name'];

/** @returns the settings, and the contents of the files that they name; null if they name none */
export function readEntranceSettings<Name extends string>(
  read: SettingsReader<Name | EntranceName>,
  trust: ProxyTrust,
): { readonly entrance: EntranceSettings; readonly keyPair: KeyPair | null } {
  const tls = tlsFiles(read);
  const keyPair = tls === null ? null : read.parse('GATEWAY_TLS_CERT', null, () => readKeyPair(tls));
  const handshakesPerClient = read.integer('GATEWAY_TLS_HANDSHAKES_PER_CLIENT', 1, 1_000_000);
  const isHttp2 = read.flag('GATEWAY_HTTP2');
  if (isHttp2 && tls === null) {
    read.refuse(
      'GATEWAY_HTTP2',
      'it needs GATEWAY_TLS_CERT and GATEWAY_TLS_KEY: clients ask for it over TLS',
    );
  }
  const proxyProtocol = read.flag('GATEWAY_PROXY_PROTOCOL');
  if (proxyProtocol && trust.kind !== 'cidrs') {
    read.refuse(
      'GATEWAY_PROXY_PROTOCOL',
      'it needs the addresses of the proxies in GATEWAY_TRUSTED_PROXIES: only their headers are trusted, and a hop count names no address',
    );
  }
  const hasOwnParser = read.flag('GATEWAY_OWN_PARSER');
  return { entrance: { tls, handshakesPerClient, isHttp2, proxyProtocol, hasOwnParser }, keyPair };
}

function tlsFiles<Name extends string>(read: SettingsReader<Name | EntranceName>): KeyPairFiles | null {
  const cert = read.text('GATEWAY_TLS_CERT');
  const key = read.text('GATEWAY_TLS_KEY');
  if (cert !== '' && key !== '') return { cert, key };
  if (cert !== '') read.refuse('GATEWAY_TLS_KEY', 'it must be set together with GATEWAY_TLS_CERT');
  if (key !== '') read.refuse('GATEWAY_TLS_CERT', 'it must be set together with GATEWAY_TLS_KEY');
  return null;
}
