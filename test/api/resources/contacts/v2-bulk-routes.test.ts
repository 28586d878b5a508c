/** PUT /api/v2/management/contacts/bulk */
import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';
import { isOnPostgres } from '#test/support/database.ts';

const api = await startApi(t);
const { db } = api.context;
await api.addWorkspace('ws2', 'env2');
const path = '/api/v2/management/contacts/bulk';
const contact = (attributes: Readonly<Record<string, unknown>>) => ({
  attributes: Object.entries(attributes).map(([key, value]) => ({
    attributeKey: { key, name: `Name of ${key}` },
    value,
  })),
});
const send = (...contacts: readonly Readonly<Record<string, unknown>>[]) =>
  api.manage('PUT', path, { workspaceId, contacts: contacts.map(contact) });
/** Maps addresses to user ids and attributes. */
async function stored(): Promise<ReadonlyMap<string, Record<string, string | null>>> {
  const rows = await db
    .selectFrom('contactAttributes')
    .innerJoin('contactAttributeKeys', 'contactAttributeKeys.id', 'contactAttributes.attributeKeyId')
    .innerJoin('contacts', 'contacts.id', 'contactAttributes.contactId')
    .select(['contactId', 'key', 'value', 'userId'])
    .execute();
  const byContact = Map.groupBy(rows, ({ contactId }) => contactId);
  return new Map(
    [...byContact.values()].map((own) => {
      const attributes = Object.fromEntries(own.map(({ key, value }) => [key, value]));
      return [String(attributes.email), { ...attributes, is: own[0]?.userId ?? null }];
    }),
  );
}

t.test('PUT 200: creates contacts and keys; a repetition changes nothing; other values do', async (t) => {
  const batch = [
    { email: 'a@example.com', userId: 'a', plan: 'pro' },
    { email: 'b@example.com', firstName: 'Bea' },
  ];
  const reply = await send(...batch);
  t.equal(reply.status, 200);
  t.strictSame(reply.json, {
    data: { status: 'success', message: 'Contacts bulk upload successful' },
  });
  const first = await stored();
  t.strictSame(first.get('a@example.com'), { email: 'a@example.com', userId: 'a', plan: 'pro', is: 'a' });
  t.strictSame(first.get('b@example.com'), { email: 'b@example.com', firstName: 'Bea', is: null });
  const key = await db
    .selectFrom('contactAttributeKeys')
    .selectAll()
    .where('key', '=', 'plan')
    .executeTakeFirst();
  t.match(key, { name: 'Name of plan', type: 'custom', isUnique: 0, dataType: 'string' });

  t.equal((await send(...batch)).status, 200);
  t.strictSame(await stored(), first);

  await send({ email: 'a@example.com', plan: 'free' }, { email: 'b@example.com', userId: 'b' });
  const second = await stored();
  t.equal(second.size, 2);
  t.match(second.get('a@example.com'), { plan: 'free', is: 'a' });
  t.match(second.get('b@example.com'), { firstName: 'Bea', userId: 'b', is: 'b' });
});

t.test('PUT 207: leaves out and names contacts whose user id belongs to another contact', async (t) => {
  const reply = await send(
    { email: 'c@example.com', userId: 'c' },
    { email: 'd@example.com', userId: 'a' },
    { email: 'a@example.com', userId: 'z', plan: 'gold' },
  );
  t.equal(reply.status, 207);
  const skippedContacts = [
    { index: 1, userId: 'a' },
    { index: 2, userId: 'z' },
  ];
  t.match(reply.json.data, {
    status: 'success',
    message: /2 of 3/,
    skippedContacts,
    meta: { skippedContacts },
  });
  const now = await stored();
  t.ok(now.has('c@example.com'));
  t.notOk(now.has('d@example.com'));
  t.match(
    now.get('a@example.com'),
    { plan: 'free', is: 'a' },
    'nothing is stored for a contact that is left out',
  );
});

t.test('PUT 422: a batch that contradicts itself or has the wrong shape', async (t) => {
  const before = await stored();
  const many = Array.from({ length: 251 }, (_, i) => contact({ email: `m${i}@example.com` }));
  for (const [field, contacts] of [
    ['contacts', many],
    ['contacts', []],
    ['contacts', 'x'],
    ['contacts.0.attributes', [{}]],
    ['contacts.1.attributes', [contact({ email: 'n@example.com' }), contact({ plan: 'x' })]],
    ['contacts.0.attributes.0.value', [contact({ email: 'nobody' })]],
    [
      'contacts.1.attributes.0.value',
      [contact({ email: 'n@example.com' }), contact({ email: 'n@example.com' })],
    ],
    [
      'contacts.1.attributes.1.value',
      [contact({ email: 'n@example.com', userId: 'n' }), contact({ email: 'o@example.com', userId: 'n' })],
    ],
    [
      'contacts.0.attributes.1.attributeKey.key',
      [
        {
          attributes: [
            ...contact({ email: 'n@example.com' }).attributes,
            ...contact({ email: 'o@example.com' }).attributes,
          ],
        },
      ],
    ],
    ['contacts.0.attributes.1.value', [contact({ email: 'n@example.com', plan: 'x'.repeat(2_049) })]],
    ['contacts.0.attributes.1.value', [contact({ email: 'n@example.com', userId: '' })]],
    ['contacts.0.attributes.1.value', [contact({ email: 'n@example.com', plan: null })]],
  ] as const) {
    const reply = await api.manage('PUT', path, { workspaceId, contacts });
    t.equal(reply.status, 422, `${field}: ${JSON.stringify(contacts).slice(0, 80)}`);
    t.match(reply.json.error.details, [{ field, issue: String }]);
  }
  t.strictSame(await stored(), before);
});

t.test('PUT 400: invalid keys, or too many', async (t) => {
  const unsafe = await send({ email: 'p@example.com', 'Bad Key': 'x' });
  t.equal(unsafe.status, 400);
  t.match(unsafe.json.error.details, [
    { field: 'contacts.0.attributes.1.attributeKey.key', issue: /lower-case/ },
  ]);
  const keys = Object.fromEntries(Array.from({ length: 149 }, (_, i) => [`k${i}`, 'x']));
  const tooMany = await send({ email: 'p@example.com', ...keys });
  t.equal(tooMany.status, 403);
  t.match(tooMany.json.error.details, [{ field: 'error', issue: /150 attribute keys/ }]);
  t.notOk((await stored()).has('p@example.com'));
  const { count } = await db
    .selectFrom('contactAttributeKeys')
    .select((select) => select.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  t.equal(count, 6, 'no key was created');
});

t.test('PUT 401, 403, 404: the scope', async (t) => {
  const body = { workspaceId, contacts: [contact({ email: 'q@example.com' })] };
  t.equal((await api.client('PUT', path, body)).status, 401);
  t.equal((await api.manage('PUT', path, { ...body, workspaceId: undefined })).status, 400);
  t.equal((await api.manage('PUT', path, { ...body, workspaceId: 'ws2' })).status, 403);
  t.equal((await api.manage('PUT', path, { ...body, workspaceId: 'cnothing' })).status, 404);
  const reader = await api.addKey({ [workspaceId]: 'read' });
  t.equal((await api.client('PUT', path, body, { 'x-api-key': reader })).status, 403);
});

t.test('PUT 200: 250 contacts at once, while others write', async (t) => {
  const contacts = Array.from({ length: 250 }, (_, i) =>
    contact({ email: `many${i}@example.com`, userId: `many${i}`, firstName: `F${i}`, lastName: `L${i}` }),
  );
  const order: string[] = [];
  const bulk = api.manage('PUT', path, { workspaceId, contacts }).then((reply) => {
    order.push('bulk');
    return reply;
  });
  const others = Array.from({ length: 3 }, async (_, i) => {
    const reply = await api.manage('POST', '/api/v2/management/contacts', {
      workspaceId,
      attributes: { email: `between${i}@example.com` },
    });
    order.push('other');
    return reply.status;
  });
  t.strictSame(await Promise.all(others), [201, 201, 201]);
  t.equal((await bulk).status, 200);
  // On SQLite all writers share one connection, in turn. On PostgreSQL the machine decides who is first.
  if (!isOnPostgres) t.strictSame(order, ['other', 'other', 'other', 'bulk']);
  const now = await stored();
  t.equal([...now.keys()].filter((email) => email.startsWith('many')).length, 250);
});

t.test('a batch of the documented size fits into a body', async (t) => {
  const bulk = await startApi(t);
  const put = (contacts: readonly object[]) => bulk.manage('PUT', path, { workspaceId, contacts });
  const batch = (attributes: number) =>
    Array.from({ length: 250 }, (_, i) =>
      contact({
        email: `c${i}@example.com`,
        ...Object.fromEntries(Array.from({ length: attributes - 1 }, (_, n) => [`key${n}`, 'x'])),
      }),
    );
  t.equal((await put(batch(19_000 / 250))).status, 200);
  t.match(await put(batch(150)), {
    status: 413,
    json: { error: { details: [{ issue: 'Request body must not exceed 2097152 bytes' }] } },
  });
});
