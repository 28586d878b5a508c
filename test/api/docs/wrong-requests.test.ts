/**
 * Sends requests with one mistake at a time to every operation of the description. The description has each received
 * status and its body. Routes that are added later are included.
 */
import t from 'tap';
import { BODY_BYTES_MAX } from '#api/errors.ts';
import type { Request } from '#test/support/world.ts';
import { startDescribedApi } from './described-api.ts';
import { wrongBodies, wrongQueries } from './wrong.ts';

const { ask, description, operations, tidy, world } = await startDescribedApi(t);
t.beforeEach(tidy);

const isClientError = (status: number): boolean => status >= 400 && status < 500;

t.test('bodies that are not JSON, of the wrong shape, or too large get described errors', async (t) => {
  for (const operation of operations) {
    const request = await world.requestFor(operation);
    if (operation.method === 'GET') continue;
    const large: Request = { ...request, body: Buffer.alloc(BODY_BYTES_MAX + 1, ' ') };
    const { status } = await ask(t, operation, large, 'too large');
    // A body that is not a form is not read to its end.
    const isForm = operation.reads.includes('multipart/form-data');
    if (!isForm) t.equal(status, 413, operation.name);
    for (const body of wrongBodies(operation, description, request.body)) {
      const reply = await ask(t, operation, { ...request, body }, `with the body ${body.slice(0, 120)}`);
      if (body === '{' && operation.body !== null) t.ok(isClientError(reply.status), `${operation.name}: {`);
    }
    // Every body is JSON, whatever its label says.
    for (const type of ['text/plain', 'application/xml; charset=utf-16', 'no type at all']) {
      const headers = { ...request.headers, 'content-type': type };
      await ask(t, operation, { ...request, headers }, `as ${type}`);
    }
  }
});

t.test('queries of the wrong shape get described replies', async (t) => {
  for (const operation of operations) {
    const request = await world.requestFor(operation);
    for (const query of wrongQueries(operation)) {
      const url = `${request.url}${request.url.includes('?') ? '&' : '?'}${query}`;
      const { status } = await ask(t, operation, { ...request, url }, `with ${query.slice(0, 80)}`);
      // PostgreSQL cannot store a NUL, so no operation accepts one.
      if (query.endsWith('=%00')) t.ok(isClientError(status), `${operation.name}: ${query}`);
    }
  }
  t.pass('every reply is described');
});
