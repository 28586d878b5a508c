/** Starts a real SMTP server on a free port of loopback, which keeps the mails that it accepts. */
import { SMTPServer } from 'smtp-server';
import type { Owner } from './gateway.ts';
import { reportWhileWaiting } from './until.ts';

interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers and body as they were sent. */
  readonly raw: string;
  /** The plain text, decoded. */
  readonly text: string;
  /** Headers by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

interface MailServer {
  readonly url: string;
  readonly mails: readonly ReceivedMail[];
  /** SMTP reply codes for the next mails, which are then not accepted, in order. */
  refuse(...codes: readonly number[]): void;
  /** Makes the server answer this command with the code; null for its usual answer. */
  refuseAt(command: Command, code: number | null): void;
  /** Number of connections so far. */
  connections(): number;
  /** Resolves with the n-th mail, counted from 1, once it has arrived. */
  mail(n: number): Promise<ReceivedMail>;
  /** Closes it before the test ends. */
  close(): Promise<void>;
}

export type Command = 'AUTH' | 'MAIL FROM' | 'RCPT TO';

interface MailServerOptions {
  /** It takes every user and password. */
  readonly hasLogin?: boolean;
  /** TLS from the start, with a self-signed certificate. */
  readonly isSecure?: boolean;
}

/** @param port 0 for any free one */
export async function startMailServer(
  owner: Owner,
  port = 0,
  { hasLogin = false, isSecure = false }: MailServerOptions = {},
): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  const refusals: number[] = [];
  const refusalsAt = new Map<Command, number>();
  const waiters = new Set<() => void>();
  let connections = 0;
  const refusalAt = (command: Command): Error | null => {
    const code = refusalsAt.get(command);
    return code === undefined ? null : Object.assign(new Error('no'), { responseCode: code });
  };
  const server = new SMTPServer({
    authOptional: true,
    secure: isSecure,
    allowInsecureAuth: true,
    disabledCommands: hasLogin ? ['STARTTLS'] : ['STARTTLS', 'AUTH'],
    onConnect(_session, callback) {
      connections += 1;
      callback();
    },
    onAuth: ({ username }, _session, callback) => callback(refusalAt('AUTH'), { user: username }),
    onMailFrom: (_address, _session, callback) => callback(refusalAt('MAIL FROM')),
    onRcptTo: (_address, _session, callback) => callback(refusalAt('RCPT TO')),
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const code = refusals.shift();
        if (code !== undefined) {
          callback(Object.assign(new Error('not now'), { responseCode: code }));
          return;
        }
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          ...parse(Buffer.concat(chunks).toString('utf8')),
        });
        callback();
        for (const waiter of waiters) waiter();
      });
    },
  });
  server.on('error', () => {
    // Clients that hang up in the middle are part of the tests.
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.server.address();
  const listening = typeof address === 'object' && address !== null ? address.port : 0;
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  owner.teardown(close);
  return {
    url: `${isSecure ? 'smtps' : 'smtp'}://127.0.0.1:${listening}`,
    mails,
    refuse: (...codes) => void refusals.push(...codes),
    refuseAt(command, code) {
      if (code === null) refusalsAt.delete(command);
      else refusalsAt.set(command, code);
    },
    connections: () => connections,
    mail: (n) =>
      new Promise((resolve) => {
        const stopReports = reportWhileWaiting(() => `for ${n} mails; received: ${mails.length}`);
        const look = (): void => {
          const found = mails[n - 1];
          if (found === undefined) return;
          stopReports();
          waiters.delete(look);
          resolve(found);
        };
        waiters.add(look);
        look();
      }),
    close,
  };
}

/** Our mails have one part of plain text, quoted-printable or not encoded. */
function parse(raw: string): Pick<ReceivedMail, 'raw' | 'text' | 'headers'> {
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const headers = Object.fromEntries(
    head
      .replaceAll(/\r\n[ \t]+/g, ' ')
      .split('\r\n')
      .map((line) => [line.split(':', 1)[0]?.toLowerCase() ?? '', line.slice(line.indexOf(':') + 1).trim()]),
  );
  const body = rest.join('\r\n\r\n');
  const text =
    headers['content-transfer-encoding'] === 'quoted-printable'
      ? body
          .replaceAll(/=\r\n/g, '')
          .replaceAll(/((?:=[0-9A-F]{2})+)/g, (bytes) =>
            Buffer.from(bytes.replaceAll('=', ''), 'hex').toString('utf8'),
          )
      : headers['content-transfer-encoding'] === 'base64'
        ? Buffer.from(body, 'base64').toString('utf8')
        : body;
  return { raw, text, headers };
}

/** Returns the value of `name` in the first link of a mail. */
export function inLink(mail: ReceivedMail, name: string): string {
  const link = /https?:\/\/\S+/.exec(mail.text)?.[0] ?? '';
  return new URL(link).searchParams.get(name) ?? '';
}
