/** An accepted mail is sent, on a real SMTP server that refuses, forgets and hangs up. */
import { pino } from 'pino';
import t from 'tap';
import { migrate } from '#api/db/migrate.ts';
import { createMailer, forgetOldMails, type Mail, type MailTransport } from '#api/mail/mailer.ts';
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
  const rolledBack = db.transaction().execute(async (trx) => {
    await mailer.accept(trx, { ...mail, to: 'nobody@example.com' });
    throw new Error('no');
  });
  await t.rejects(rolledBack);
  const subject = 'x\r\nBcc: victim@example.com';
  await mailer.accept(db, { ...mail, subject, replyTo: 'reply@example.com' });
  await mailer.idle();
  await mailer.idle();
  t.equal(server.mails.length, 1);
  const received = server.mails[0];
  t.match(received, { from: 'from@example.com', to: ['to@example.com'] });
  t.equal(received?.text.replaceAll('\r\n', '\n').trimEnd(), mail.body.trimEnd());
  t.match(received?.headers, { 'reply-to': 'reply@example.com', 'auto-submitted': 'auto-generated' });
  t.notOk('bcc' in (received?.headers ?? {}), 'a subject adds no header');
  t.match(await row(), { status: 'sent', body: '', attemptCount: 1, lastError: null });
  t.notMatch(JSON.stringify(lines), /to@example\.com|universe|x\.example/, 'the log has none of the mail');
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
    t.match(lastError, /^E\w+ 4\d\d DATA$/);
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

t.test('parks a mail after its last attempt, about a day later', async (t) => {
  let attempts = 0;
  const { mailer, db, clock, row } = await setUp(t, {
    send: async () => {
      attempts += 1;
      throw new Error('EAUTH 535');
    },
    close: () => undefined,
  });
  await mailer.accept(db, mail);
  const begunAt = clock.now();
  await mailer.idle();
  for (let { dueAt } = await row(); dueAt !== null; { dueAt } = await row()) {
    clock.advance(Date.parse(dueAt) - clock.now());
    await mailer.idle();
  }
  const hours = (clock.now() - begunAt) / 3_600_000;
  t.ok(hours > 18 && hours < 30, `${hours} hours`);
  t.equal(attempts, 14);
  t.match(await row(), { status: 'parked', lastError: 'EAUTH 535' });
  await db
    .updateTable('mailOutbox')
    .set((mail) => ({ status: 'pending', failureCount: 0, dueAt: mail.ref('createdAt') }))
    .execute();
  await mailer.idle();
  t.equal(attempts, 15, 'an operator can request another attempt');
});

t.test('parks a mail whose process dies at every attempt', async (t) => {
  const { server, mailer, db, row } = await withServer(t);
  await mailer.accept(db, mail);
  const counts = { attemptCount: 14, failureCount: 14 };
  await db
    .updateTable('mailOutbox')
    .set({ ...counts, lease: 'dead' })
    .execute();
  await mailer.idle();
  t.equal(server.mails.length, 0);
  t.match(await row(), { status: 'parked', lastError: 'the last attempt did not end' });
});

for (const [title, options, refusal, reason] of [
  ['the sender', {}, { command: 'MAIL FROM', code: 553 }, /^EENVELOPE 553 MAIL FROM$/],
  ['the login', { user: 'me:wrong@' }, { command: 'AUTH', code: 535 }, /^EAUTH 535 AUTH PLAIN$/],
  ['a missing login', {}, { command: 'RCPT TO', code: 530 }, /^EENVELOPE 530 RCPT TO$/],
] as const)
  t.test(`a server that refuses ${title}: logs the codes, keeps the mail, and sends it later`, async (t) => {
    const server = await startMailServer(t, 0, { hasLogin: 'user' in options });
    const url = 'user' in options ? server.url.replace('//', `//${options.user}`) : server.url;
    const { db, mailer, clock, lines, row } = await setUp(t, createSmtpTransport(url, from));
    server.refuseAt(refusal.command, refusal.code);
    await mailer.accept(db, mail);
    await mailer.idle();
    t.match(await row(), { status: 'pending', failureCount: 1, lastError: reason });
    t.match(lines.at(-1), { level: 40, reason });
    t.notMatch(JSON.stringify(lines), /example\.com|wrong/, 'the log has no address and no password');
    server.refuseAt(refusal.command, null);
    clock.advance(60_000);
    await mailer.idle();
    t.equal(server.mails.length, 1);
  });

t.test('a certificate that is not accepted: the mail waits, and the log has the code', async (t) => {
  const server = await startMailServer(t, 0, { isSecure: true });
  const { db, mailer, row } = await setUp(t, createSmtpTransport(server.url, from));
  await mailer.accept(db, mail);
  await mailer.idle();
  t.match(await row(), { status: 'pending', lastError: /^ESOCKET \w*CERT\w* CONN$/ });
});

t.test('5xx to RCPT TO: parks that mail at once, and sends the others', async (t) => {
  const { server, mailer, db, lines } = await withServer(t);
  server.refuseAt('RCPT TO', 550);
  await mailer.accept(db, mail);
  await mailer.idle();
  t.ok(lines.some(({ level, msg }) => level === 50 && /parked/.test(String(msg))));
  server.refuseAt('RCPT TO', null);
  await mailer.accept(db, { ...mail, to: 'other@example.com' });
  await mailer.idle();
  const rows = await db.selectFrom('mailOutbox').select(['recipient', 'status', 'lastError']).execute();
  t.match(
    rows.find(({ recipient }) => recipient === mail.to),
    { status: 'parked', lastError: 'EENVELOPE 550 RCPT TO' },
  );
  t.equal(server.mails.length, 1);
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
