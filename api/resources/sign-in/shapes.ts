/** Users and sessions in the format of Better Auth. */
import { Type } from 'typebox';
import type { User as UserRow } from '#api/resources/accounts/store.ts';

const Text = Type.String();
const None = Type.Null();

export const User = Type.Object({
  id: Text,
  name: Text,
  email: Text,
  emailVerified: Type.Boolean(),
  image: None,
  createdAt: Text,
  updatedAt: Text,
  twoFactorEnabled: Type.Boolean(),
});

export const Session = Type.Object({
  id: Text,
  token: Text,
  userId: Text,
  createdAt: Text,
  updatedAt: Text,
  expiresAt: Text,
  ipAddress: None,
  userAgent: None,
});

export function shownUser(
  user: Pick<
    UserRow,
    'id' | 'name' | 'email' | 'emailVerified' | 'createdAt' | 'updatedAt' | 'twoFactorEnabled'
  >,
) {
  const { id, name, email, createdAt, updatedAt } = user;
  return {
    id,
    name,
    email,
    emailVerified: user.emailVerified !== null,
    image: null,
    createdAt,
    updatedAt,
    twoFactorEnabled: user.twoFactorEnabled === 1,
  };
}
