/** The way mails take, when there is one. */
import type { MailAddress, MailTransport } from './mail.ts';

/**
 * @param url smtp:// or smtps://; null: mails are not sent, and nodemailer is not loaded
 */
export async function openTransport(url: string | null, from: MailAddress): Promise<MailTransport | null> {
  if (url === null) return null;
  const { createSmtpTransport } = await import('./smtp.ts');
  return createSmtpTransport(url, from);
}
