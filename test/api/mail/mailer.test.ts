/** An accepted mail is sent, on a real SMTP server that refuses, forgets and hangs up. */
import { pino } from 'pino';
import t from 'tap';
import { migrate } from '#api/db/migrate.ts';
import { pauseAfter } from '#api/db/queue.ts';
import type { Mail, MailTransport } from '#api/mail/mail.ts';
import { ATTEMPTS_MAX, createMailer, RETRIES } from '#api/mail/mailer.ts';
import { forgetOldMails } from '#api/mail/outbox.ts';
import { createSmtpTransport } from '#api/mail/smtp.ts';
import { countingRandom } from '#test/support/api-app.ts';
import { testClock } from '#test/support/clock.ts';
import { openPrivateDatabase } from '#test/support/database.ts';
import type { Owner } from '#test/support/gateway.ts';
import { startMailServer } from '#test/support/smtp.ts';

const from = { name: 'Flóodgate', address: 'from@example.com' };
const mail: Mail = {
  kind: 'test',
  to: 'to@example.com',
  subject: 'Grüße',
  body: 'Hello ünivérse\n\nhttps://x.example/?a=b\n',
};

async function setUp(t: Owner, transport: MailTransport | null) {
  const db = await openPrivateDatabase(t);
  const clock = testClock();
  await migrate(db);
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const mailer = createMailer({ db, transport, clock: clock.now, random: countingRandom(), log });
  t.teardown(() => mailer.close());
  const row = () => db.selectFrom('mailOutbox').selectAll().executeTakeFirstOrThrow();
  return { db, clock, mailer, row, lines };
}

async function withServer(t: Owner) {
  const server = await startMailServer(t);
  return { server, ...(await setUp(t, createSmtpTransport(server.url, from))) };
}

t.test('sends an accepted mail once, and then deletes its text', async (t) => {
  const { server, mailer, db, row, lines } = await withServer(t);
  await mailer.accept(db, { ...mail, replyTo: 'reply@example.com' });
  await mailer.idle();
  await mailer.idle();
  t.equal(server.mails.length, 1);
  const received = server.mails[0];
  t.match(received, { from: 'from@example.com', to: ['to@example.com'] });
  t.equal(received?.text.replaceAll('\r\n', '\n').trimEnd(), mail.body.trimEnd());
  t.match(received?.headers, { 'reply-to': 'reply@example.com', 'auto-submitted': 'auto-generated' });
  t.match(await row(), { status: 'sent', body: '', attemptCount: 1, lastError: null });
  t.notMatch(JSON.stringify(lines), /to@example\.com|universe|x\.example/, 'the log has none of the mail');
});

t.test('a transaction that is rolled back sends no mail', async (t) => {
  const { server, mailer, db } = await withServer(t);
  const failed = db.transaction().execute(async (trx) => {
    await mailer.accept(trx, mail);
    throw new Error('no');
  });
  await t.rejects(failed);
  await mailer.idle();
  t.equal(server.mails.length, 0);
});

t.test('retries at a busy server after growing pauses, with the same Message-ID', async (t) => {
  const { server, mailer, db, clock, row } = await withServer(t);
  server.refuse(451, 421);
  await mailer.accept(db, mail);
  const pauses: number[] = [];
  for (let i = 0; i < 2; i++) {
    await mailer.idle();
    const { status, dueAt, lastError } = await row();
    t.equal(status, 'pending');
    t.match(lastError, /^E\w+ 4\d\d$/);
    const pause = Date.parse(dueAt ?? '') - clock.now();
    pauses.push(pause);
    await mailer.idle();
    t.equal((await row()).attemptCount, i + 1, 'no attempt before the pause is over');
    clock.advance(pause);
  }
  const [first = 0, second = 0] = pauses;
  t.ok(first >= 15_000 && first <= 30_000, `${first}`);
  t.ok(second >= 30_000 && second <= 60_000, `${second}`);
  await mailer.idle();
  t.equal(server.mails.length, 1);
  t.equal(server.mails[0]?.headers['message-id'], `<${(await row()).id}@example.com>`);
});

t.test('parks a mail at once if the server will never accept it', async (t) => {
  const { server, mailer, db, row, lines } = await withServer(t);
  server.refuse(550);
  await mailer.accept(db, mail);
  await mailer.idle();
  t.match(await row(), { status: 'parked', attemptCount: 1, lastError: /550/ });
  t.ok(lines.some(({ level, msg }) => level === 50 && /parked/.test(String(msg))));
});

t.test('parks a mail after its last attempt', async (t) => {
  let attempts = 0;
  const { mailer, db, clock, row } = await setUp(t, {
    send: async () => {
      attempts += 1;
      throw new Error('EAUTH 535');
    },
    close: () => undefined,
  });
  await mailer.accept(db, mail);
  for (let i = 0; i < ATTEMPTS_MAX + 5; i++) {
    await mailer.idle();
    clock.advance(7 * 60 * 60 * 1000);
  }
  t.equal(attempts, ATTEMPTS_MAX);
  t.match(await row(), { status: 'parked', lastError: 'EAUTH 535' });
  await db
    .updateTable('mailOutbox')
    .set((mail) => ({ status: 'pending', failureCount: 0, dueAt: mail.ref('createdAt') }))
    .execute();
  await mailer.idle();
  t.equal(attempts, ATTEMPTS_MAX + 1, 'an operator can request another attempt');
});

t.test('parks a mail whose process dies at every attempt', async (t) => {
  const { server, mailer, db, row } = await withServer(t);
  await mailer.accept(db, mail);
  const counts = { attemptCount: ATTEMPTS_MAX, failureCount: ATTEMPTS_MAX };
  await db
    .updateTable('mailOutbox')
    .set({ ...counts, lease: 'dead' })
    .execute();
  await mailer.idle();
  t.equal(server.mails.length, 0);
  t.match(await row(), { status: 'parked', lastError: 'the last attempt did not end' });
});

for (const [title, options, refusal, advice] of [
  ['the sender', {}, { command: 'MAIL FROM', code: 553 }, /EENVELOPE 553; check MAIL_FROM/],
  ['the login', { user: 'me:wrong@' }, { command: 'AUTH', code: 535 }, /EAUTH 535; check user and password/],
  ['a missing login', {}, { command: 'MAIL FROM', code: 530 }, /530; check user and password/],
] as const) {
  t.test(`a server that refuses ${title}: logs the cause, keeps the mail, and sends it later`, async (t) => {
    const server = await startMailServer(t, 0, { hasLogin: 'user' in options });
    const url = 'user' in options ? server.url.replace('//', `//${options.user}`) : server.url;
    const { db, mailer, clock, lines, row } = await setUp(t, createSmtpTransport(url, from));
    server.refuseAt(refusal.command, refusal.code);
    await mailer.accept(db, mail);
    await mailer.idle();
    t.match(await row(), { status: 'pending', failureCount: 1, lastError: advice });
    t.match(lines.at(-1), { level: 40, reason: advice });
    t.notMatch(JSON.stringify(lines), /example\.com|wrong/, 'the log has no address and no password');
    server.refuseAt(refusal.command, null);
    clock.advance(60_000);
    await mailer.idle();
    t.equal(server.mails.length, 1);
    t.match(await row(), { status: 'sent' });
  });
}

t.test('a certificate that nobody signed: the log says what to check', async (t) => {
  const server = await startMailServer(t, 0, { isSecure: true });
  const { db, mailer, row } = await setUp(t, createSmtpTransport(server.url, from));
  await mailer.accept(db, mail);
  await mailer.idle();
  t.match(await row(), { status: 'pending', lastError: /check SMTP_URL: .*TLS/ });
});

t.test('5xx to RCPT TO: parks that mail at once, and sends the others', async (t) => {
  const { server, mailer, db } = await withServer(t);
  server.refuseAt('RCPT TO', 550);
  await mailer.accept(db, mail);
  await mailer.idle();
  server.refuseAt('RCPT TO', null);
  await mailer.accept(db, { ...mail, to: 'other@example.com' });
  await mailer.idle();
  const rows = await db.selectFrom('mailOutbox').select(['recipient', 'status', 'lastError']).execute();
  t.match(
    rows.find(({ recipient }) => recipient === mail.to),
    { status: 'parked', lastError: 'EENVELOPE 550' },
  );
  t.equal(server.mails.length, 1);
});

t.test('a mail that is too large for the server uses up its own attempts', async (t) => {
  const { server, mailer, db, row } = await withServer(t);
  server.refuseAt('MAIL FROM', 552);
  await mailer.accept(db, mail);
  await mailer.idle();
  t.match(await row(), { status: 'parked' });
});

t.test('two processes do not send a mail twice, and one takes over the mails of a dead one', async (t) => {
  const begun = Promise.withResolvers<void>();
  const stuck = Promise.withResolvers<void>();
  const sent: string[] = [];
  const { mailer, db, clock } = await setUp(t, {
    send() {
      begun.resolve();
      return stuck.promise;
    },
    close: () => undefined,
  });
  const transport: MailTransport = { send: async ({ id }) => void sent.push(id), close: () => undefined };
  const other = createMailer({
    db,
    transport,
    clock: clock.now,
    random: countingRandom(),
    log: pino({ level: 'silent' }),
  });
  t.teardown(() => other.close());
  await mailer.accept(db, mail);
  const dying = mailer.idle();
  // A mail is sent only once its lease is written. On PostgreSQL each process has connections of its own.
  await begun.promise;
  await other.idle();
  t.strictSame(sent, [], 'the mail is leased to the first process');
  clock.advance(3 * 60_000);
  await other.idle();
  t.equal(sent.length, 1, 'the lease has expired');
  stuck.resolve();
  await dying;
});

t.test('without a server mails wait, are logged without content, and go after a month', async (t) => {
  const { mailer, db, clock, row, lines } = await setUp(t, null);
  await mailer.accept(db, mail);
  await mailer.idle();
  t.match(await row(), { status: 'pending', attemptCount: 0, body: mail.body });
  t.equal(lines.length, 1);
  t.match(lines[0], { msg: /SMTP_URL is unset/, kind: 'test', mailId: String });
  t.notMatch(JSON.stringify(lines), /to@example\.com|Hello/);
  clock.advance(31 * 24 * 60 * 60 * 1000);
  await forgetOldMails(db, clock.now());
  t.strictSame(await db.selectFrom('mailOutbox').selectAll().execute(), []);
});

t.test('compares addresses without regard to their spelling', async (t) => {
  const { server, mailer, db } = await withServer(t);
  await mailer.accept(db, { ...mail, to: 'a@example.com', subject: 'x\r\nBcc: victim@example.com' });
  await mailer.idle();
  t.strictSame(server.mails[0]?.to, ['a@example.com']);
  t.notOk('bcc' in (server.mails[0]?.headers ?? {}));
});

t.test('all attempts last about a day', async (t) => {
  const middle = (bytes: number): Uint8Array => new Uint8Array(bytes).fill(128);
  let hours = 0;
  for (let i = 1; i < ATTEMPTS_MAX; i++) hours += pauseAfter(i, RETRIES, middle) / 3_600_000;
  t.ok(hours > 18 && hours < 30, `${hours} hours`);
});
