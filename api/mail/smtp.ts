/** Mails over SMTP. The only file that knows nodemailer. */
import { createTransport } from 'nodemailer';
import type { Millis } from '#shared/clock.ts';
import { type MailAddress, MailRefused, type MailTransport } from './mail.ts';

const CONNECT_TIMEOUT_MS: Millis = 10_000;
/** Silence of the server in the middle of a mail. */
const SOCKET_TIMEOUT_MS: Millis = 20_000;

/** @param url smtp:// or smtps://, with user and password where the server asks for them */
export function createSmtpTransport(url: string, from: MailAddress): MailTransport {
  const transport = createTransport({
    url,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    // Nothing of a mail is ever read from a file or fetched from an address.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const domain = from.address.split('@')[1] ?? 'localhost';
  return {
    async send({ id, to, replyTo, subject, body }) {
      try {
        await transport.sendMail({
          from,
          // As objects: text would be read as a list of addresses.
          to: { name: '', address: to },
          ...(replyTo ? { replyTo: { name: '', address: replyTo } } : {}),
          subject,
          text: body,
          // The same at every attempt, so that a mail that arrives twice is known to be one.
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
        });
      } catch (error) {
        if (isRefusal(error)) throw new MailRefused(describe(error), error);
        throw new Error(describe(error), { cause: error });
      }
    },
    close: () => transport.close(),
  };
}

/** RFC 5321 §4.2.1: 5yz is permanent. What concerns the login (530 to 538) an operator can fix, so the mail may wait. */
function isRefusal(error: unknown): boolean {
  const code = replyCode(error);
  return code !== null && code >= 500 && (code < 530 || code > 538);
}

/** What went wrong, without the address that the server's own text repeats. */
function describe(error: unknown): string {
  const code = replyCode(error);
  const kind = error instanceof Error && 'code' in error ? String(error.code) : 'error';
  return code === null ? kind : `${kind} ${code}`;
}

function replyCode(error: unknown): number | null {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'responseCode') : null;
  return typeof code === 'number' ? code : null;
}
