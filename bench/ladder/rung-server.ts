/**
 * The program of a rung: `node rung-server.ts STEP`, with the gateway's environment. It takes the first steps of the
 * gateway with the gateway's own modules, and leaves out the rest: a request that passed the last step gets a fixed
 * reply.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { policyLoader } from '#gateway/app.ts';
import { createBounds } from '#gateway/bounds/bounds.ts';
import { Clients } from '#gateway/bounds/clients.ts';
import { readConfig } from '#gateway/config.ts';
import { ClientConnection } from '#gateway/http/client-connection.ts';
import { DateField } from '#gateway/http/date-field.ts';
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { originOf } from '#gateway/http/request-origin.ts';
import { SharedReply } from '#gateway/http/shared-reply.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { Bucket } from '#gateway/limiter/charge.ts';
import { Penalties } from '#gateway/listen/connection/penalties.ts';
import { Pipelining } from '#gateway/listen/connection/pipelining.ts';
import { Listener } from '#gateway/listen/listener.ts';
import { PlainConnection, type PlainConnectionOptions } from '#gateway/listen/plain/plain-connection.ts';
import { plainHead } from '#gateway/listen/plain/plain-request.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { readPolicyFile } from '#gateway/policy/policy-file.ts';
import { loadWatched } from '#gateway/policy/watched-file.ts';
import { limitRefusal } from '#gateway/refusals/refusal.ts';
import { UNREAD } from '#gateway/reply/cors.ts';
import { DenialWriter } from '#gateway/reply/denial.ts';
import { headersOf, type OwnReply, rawReply } from '#gateway/reply/own-reply.ts';
import { refusalReply } from '#gateway/reply/refusal-reply.ts';
import { openLimiting } from '#gateway/request/open-limiting.ts';
import { openLog } from '#shared/log-lines.ts';
import { DECISION, type Parts, RungRequest } from './rung-request.ts';
import { type Step, stepsOf } from './rungs.ts';

const steps = stepsOf(process.argv[2] as Step);
const { config, secrets, parts } = readConfig(process.env);
const clock = (): number => performance.timeOrigin + performance.now();
const log = openLog({ level: 'error' });
const load = await policyLoader(parts);
const policies = loadWatched(readPolicyFile(config.policiesFile), config.policiesFile, load).loaded;
const common = { clock, log };
const limiting = await openLimiting({
  ...{ ...common, policies, secrets, wallClock: Date.now, replica: 'rung', newSalt: () => 'bench' },
  ...{ countersMax: 65_536, credentialsMax: 65_536, trust: config.trust },
  ...{
    headerFilter: new HeaderFilter(),
    onUntrustedChain: () => undefined,
    randomInt: (end) => randomInt(end),
  },
});
await limiting.start();
const bounds = createBounds(config.bounds, common);
/** As long as the gateway's reply to such a request, so that all rungs write the same number of bytes. */
function fixedReply(): OwnReply {
  const [counter] = countersOf(policies);
  if (counter === undefined) throw new Error('the policy file has no policy');
  const bucket = new Bucket(counter, identityOf('x'.repeat(22)));
  const { policy, limit } = bucket;
  const used = { used: limit, share: limit, remaining: 0, resetMs: 30_000, canNeverPass: false };
  const verdict = { policy, capacity: limit, limit, bucket, ...used };
  const framing = { cors: UNREAD, close: false, page: null, decision: DECISION };
  return refusalReply(limitRefusal([verdict], [], 'store', null), framing);
}

const reply = fixedReply();

if (steps.has('connection')) {
  const clients = new Clients();
  const shared: Parts = {
    steps,
    shared: new SharedReply(reply.status, headersOf(reply), reply.body, DECISION),
    date: new DateField(Date.now),
    enforcement: limiting.enforcement,
    denials: new DenialWriter(Date.now),
  };
  const options: PlainConnectionOptions = {
    ...{ clock, date: new DateField(Date.now), keepAlive: 'timeout=65', idleMs: 65_000, unusedMs: 10_000 },
    pieces: { clock, onSmallPieces: () => undefined },
    pipelining: new Pipelining(bounds.pipelined, new Penalties(clients, new Map())),
    onRequest: (connection, req, res) => new RungRequest(connection, req, res, shared).run(),
    onClientError: (_, socket) => socket.destroy(),
    onHandOver: ({ socket }) => socket.destroy(),
  };
  const listener = new Listener((socket) => {
    const origin = originOf(socket, config.trust);
    new PlainConnection(new ClientConnection(socket, origin, clients.enter(origin.peer)), options);
  }, 65_000);
  await listener.listen({ host: config.host, port: config.port, reusePort: false });
} else {
  const text = rawReply(reply, Date.now());
  const parses = steps.has('parser');
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes: Buffer) => {
      if (parses && plainHead(bytes) === null) socket.destroy();
      else socket.write(text);
    });
  });
  await once(server.listen({ host: config.host, port: config.port, backlog: 1024 }), 'listening');
}
process.stdout.write('Gateway ready\n');
