/** `POST /api/replay`: decides the requests of an access log by an edited policy file. One replay runs at a time. */
import type { FastifyInstance } from 'fastify';
import type { AdminContext } from './context.ts';
import { AdminError } from './errors.ts';
import { input } from './input.ts';
import type { ReplayBounds } from './replay-upload.ts';

const BOUNDS: ReplayBounds = {
  policyBytes: 262_144,
  logBytes: 67_108_864,
  silenceMs: 30_000,
  uploadMs: 120_000,
  runMs: 60_000,
};
const AGAIN_SECONDS = 5;

const querySchema = input(
  {
    policyBytes: { type: 'string', pattern: '^[1-9][0-9]{0,8}$' },
  },
  ['policyBytes'],
);

export async function replayRoutes(app: FastifyInstance, options: AdminContext): Promise<void> {
  const { policyText, referencedTexts, control, audit, stopping, replayBounds: bounds = BOUNDS } = options;
  const closing = new AbortController();
  let running: Promise<unknown> | null = null;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/octet-stream', async (_request: unknown, body: unknown) => body);
  app.addHook('preClose', async () => {
    closing.abort();
    await running?.catch(() => undefined);
  });

  app.post<{ Querystring: { policyBytes: string } }>(
    '/replay',
    {
      config: { isUpload: true },
      schema: { querystring: querySchema },
    },
    async (request, reply) => {
      const policyBytes = Number(request.query.policyBytes);
      if (policyBytes > bounds.policyBytes)
        throw new AdminError(
          400,
          `a policy file to try has at most ${bounds.policyBytes} bytes; use floodgate replay on the command line`,
        );
      const left = new AbortController();
      reply.raw.once('close', () => left.abort());
      const signal = AbortSignal.any([left.signal, closing.signal, stopping]);
      if (running !== null || signal.aborted)
        return reply
          .code(503)
          .header('retry-after', String(AGAIN_SECONDS))
          .send({ message: 'another log is being replayed; try again in a few seconds' });
      const run = (async () => {
        const { replayUpload } = await import('./replay-upload.ts');
        return replayUpload(request.raw, {
          ...options,
          policyBytes,
          bounds,
          signal,
          inUse: { text: policyText(), referenced: referencedTexts() },
          // With the salt, digests are the same as elsewhere on the page. During an outage of the store it is unknown.
          salt: () => control.salt().catch(() => ''),
          onReceived: (logBytes) => audit(request, 'replay', { policyBytes, logBytes }),
        });
      })();
      running = run;
      try {
        const { status, document } = await run;
        if (status === 408) reply.header('connection', 'close');
        return await reply.code(status).type('application/json').send(document);
      } finally {
        running = null;
      }
    },
  );
}
