/** What a person who is invited reads. */
import type { Mail } from '#api/mail/mail.ts';
import type { OpenInvite } from './store.ts';

export function inviteLink(publicUrl: string, token: string): string {
  return `${publicUrl}/invite?token=${token}`;
}

export function inviteMail(
  {
    email,
    organizationName,
    inviterName,
    role,
  }: Pick<OpenInvite, 'email' | 'organizationName' | 'inviterName' | 'role'>,
  link: string,
): Mail {
  return {
    kind: 'invite',
    to: email,
    subject: `Invitation to ${organizationName}`,
    body: `${inviterName} invites you to ${organizationName}, as ${role}. Open this link within seven days to accept:

${link}

If you do not know what this is about, ignore this mail: nothing happens without the link.
`,
  };
}
