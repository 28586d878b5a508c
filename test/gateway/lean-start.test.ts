/**
 * Holds which modules a gateway loads that only limits. The library of each further feature would take megabytes in
 * every process.
 */
import t from 'tap';
import { environment } from '#test/support/gateway-process.ts';
import { holdTo, loadedBy } from '#test/support/loaded-modules.ts';

/** The most modules by package that a default start loads. */
const MODULES_MAX = {
  own: 234,
  // For policies, the upstream and addresses.
  'ipaddr.js': 1,
  typebox: 235,
  yaml: 72,
  // The web framework of the admin listener.
  fastify: 32,
  '@fastify/error': 1,
  '@fastify/forwarded': 1,
  '@fastify/proxy-addr': 1,
  'abstract-logging': 1,
  avvio: 13,
  'fast-decode-uri-component': 1,
  'fast-deep-equal': 1,
  'fast-json-stringify': 2,
  'fast-querystring': 4,
  fastq: 1,
  'find-my-way': 12,
  'process-warning': 1,
  ret: 11,
  reusify: 1,
  rfdc: 1,
  'safe-regex2': 1,
  'secure-json-parse': 1,
  semver: 47,
  'toad-cache': 1,
  // The log.
  pino: 12,
  'pino-std-serializers': 7,
  '@pinojs/redact': 1,
  'atomic-sleep': 1,
  'on-exit-leak-free': 1,
  'quick-format-unescaped': 1,
  'safe-stable-stringify': 1,
  'sonic-boom': 1,
  'thread-stream': 4,
} as const;

t.test('a gateway with limits loads only the listed modules', async (t) => {
  const env = await environment({ GATEWAY_UPSTREAM: 'http://127.0.0.1:9' });
  const loaded = await loadedBy(t, 'gateway/main.ts', env, async () => {
    const healthy = await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/healthz`);
    t.equal(healthy.status, 200);
  });
  holdTo(t, loaded, MODULES_MAX);
  const find = (pattern: RegExp): readonly string[] => loaded.names.filter((name) => pattern.test(name));
  t.same(find(/internal\/deps\/undici/), [], 'the HTTP client of Node is not loaded');
  t.same(find(/^language:/), [], 'the tables of languages are not loaded');
  t.same(
    find(/\/gateway\/(?:cli|tls\/certificate|tracing\/open|store\/node|decision-listener\/listeners)/),
    [],
    'features that are switched off are not loaded',
  );
});
