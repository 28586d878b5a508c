/** Sends mails over SMTP. This is the only file that knows nodemailer. */
import { createTransport } from 'nodemailer';
import type { Millis } from '#shared/clock.ts';
import { MailRefused, type MailTransport } from './mailer.ts';

const CONNECT_TIMEOUT_MS: Millis = 10_000;
/** Longest silence of the server in the middle of a mail. */
const SOCKET_TIMEOUT_MS: Millis = 20_000;

export interface MailAddress {
  /** Name of the recipient; empty if there is none. */
  readonly name: string;
  readonly address: string;
}

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
        throw failureOf(error);
      }
    },
    close: () => transport.close(),
  };
}

interface SmtpError {
  readonly code: string;
  /** The code of Node or OpenSSL, such as DEPTH_ZERO_SELF_SIGNED_CERT. */
  readonly originalCode: string;
  readonly responseCode: number;
  readonly command: string;
}

/**
 * Describes an error by its codes and the command, such as `EAUTH 535 AUTH PLAIN`: the server's text repeats the address. A mail
 * is refused if the server refuses its recipient or its text for good (RFC 5321, 4.2.1). Any other error may be that of all
 * mails: replies below 540 are about the login or the connection (RFC 4954), and those to other commands about our address.
 */
function failureOf(error: unknown): Error {
  const { code, originalCode, responseCode, command } = error as Partial<SmtpError>;
  const parts = [code ?? 'error', originalCode, responseCode, command];
  const text = parts.filter((part) => part !== undefined).join(' ');
  const isAboutMail = command === 'RCPT TO' || command === 'DATA';
  if (isAboutMail && responseCode !== undefined && responseCode >= 540)
    return new MailRefused(text, { cause: error });
  return new Error(text, { cause: error });
}
