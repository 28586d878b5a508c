/** Sends mails over SMTP. This is the only file that knows nodemailer. */
import { createTransport } from 'nodemailer';
import type { Millis } from '#shared/clock.ts';
import { type MailAddress, MailRefused, type MailTransport } from './mail.ts';

const CONNECT_TIMEOUT_MS: Millis = 10_000;
/** Longest silence of the server in the middle of a mail. */
const SOCKET_TIMEOUT_MS: Millis = 20_000;

/** @param url smtp:// or smtps://, with user and password if the server requires them */
export function createSmtpTransport(url: string, from: MailAddress): MailTransport {
  const transport = createTransport({
    url,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    // A mail never causes a file to be read or an address to be fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const domain = from.address.split('@')[1] ?? 'localhost';
  return {
    async send({ id, to, replyTo, subject, body }) {
      try {
        await transport.sendMail({
          from,
          // Pass addresses as objects, because text would be parsed as a list of addresses.
          to: { name: '', address: to },
          ...(replyTo ? { replyTo: { name: '', address: replyTo } } : {}),
          subject,
          text: body,
          // The Message-ID is the same at every attempt, so that mail programs recognise a mail that arrives twice.
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
        });
      } catch (error) {
        const advice = adviceFor(error);
        if (advice !== null) throw new Error(`${describe(error)}; ${advice}`, { cause: error });
        if (isRefusal(error)) throw new MailRefused(describe(error), error);
        throw new Error(describe(error), { cause: error });
      }
    },
    close: () => transport.close(),
  };
}

/**
 * @returns advice for the operator if the server refuses every mail; null if only this mail may be the cause. A mail that is
 * not the cause is tried again, so only errors count that no single mail can cause: a failed login, TLS, and the reply to
 * our own address.
 */
function adviceFor(error: unknown): string | null {
  const kind = textOf(error, 'code');
  const command = textOf(error, 'command');
  const code = replyCode(error);
  const isLogin = /^E(NO|O)?AUTH/.test(kind) || command.startsWith('AUTH');
  // RFC 4954: replies about the login, to any command.
  if (isLogin || (code !== null && code >= 530 && code <= 538)) return 'check user and password in SMTP_URL';
  const isTls =
    /TLS$/.test(kind) || command === 'STARTTLS' || CERTIFICATE.test(textOf(error, 'originalCode'));
  if (isTls) return "check SMTP_URL: the server's TLS or its certificate is not accepted";
  // 552 is about the size of this mail.
  const isSender = command === 'MAIL FROM' && code !== null && code >= 500 && code !== 552;
  return isSender ? 'check MAIL_FROM: the server does not take this sender' : null;
}

/** Codes of Node and OpenSSL, such as DEPTH_ZERO_SELF_SIGNED_CERT and ERR_SSL_WRONG_VERSION_NUMBER. */
const CERTIFICATE = /CERT|_SSL_|_TLS_|LEAF_SIGNATURE/;

/** Whether the server refuses the mail permanently (5yz, RFC 5321 §4.2.1). */
function isRefusal(error: unknown): boolean {
  const code = replyCode(error);
  return code !== null && code >= 500;
}

/** Describes an error without the server's text, which repeats the address. */
function describe(error: unknown): string {
  const code = replyCode(error);
  const kind = textOf(error, 'code') || 'error';
  return code === null ? kind : `${kind} ${code}`;
}

function replyCode(error: unknown): number | null {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'responseCode') : null;
  return typeof code === 'number' ? code : null;
}

function textOf(error: unknown, property: string): string {
  const value: unknown = error instanceof Error ? Reflect.get(error, property) : '';
  return typeof value === 'string' ? value : '';
}
