/** Reads the mails that an API in this process has accepted. */
import type { TestApi } from './api-app.ts';

export interface StoredMail {
  readonly kind: string;
  readonly recipient: string;
  readonly replyTo: string | null;
  readonly subject: string;
  readonly body: string;
  /** The token in its link; empty without one. */
  readonly token: string;
}

/** Returns the accepted mails, oldest first. @param kind of all kinds if absent */
export async function mailsOf(
  { context }: Pick<TestApi, 'context'>,
  kind?: string,
): Promise<readonly StoredMail[]> {
  const rows = await context.db
    .selectFrom('mailOutbox')
    .select(['kind', 'recipient', 'replyTo', 'subject', 'body'])
    .orderBy('createdAt')
    .orderBy('id')
    .execute();
  return rows
    .filter((row) => kind === undefined || row.kind === kind)
    .map((row) => ({ ...row, token: /[?&]token=([\w.~%-]+)/.exec(row.body)?.[1] ?? '' }));
}

export async function lastMail(api: Pick<TestApi, 'context'>, kind?: string): Promise<StoredMail> {
  const mail = (await mailsOf(api, kind)).at(-1);
  if (mail === undefined) throw new Error(`No mail ${kind ?? ''} was accepted`);
  return mail;
}
