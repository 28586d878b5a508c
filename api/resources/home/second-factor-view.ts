/** The page for the second factor: whether it is on, its forms, and the key and backup codes of a set-up. Pure. */
import { field, form, hidden, links, notice } from '#api/http/page-form.ts';
import { ACCOUNT_PATH } from '#api/resources/accounts/login-page.ts';
import type { User } from '#api/resources/accounts/store.ts';
import { escapeHtml } from '#shared/page.ts';

export const SECOND_FACTOR_PATH = `${ACCOUNT_PATH}/second-factor`;

const steps = ['begin', 'confirm', 'renew', 'disable'] as const;
/** A step that a form asks for. Each form has one. */
type Step = (typeof steps)[number];

export function isStep(text: string): text is Step {
  return (steps as readonly string[]).includes(text);
}

export interface Account {
  readonly user: User;
  /** The secret; null if no set-up was begun. */
  readonly secret: Uint8Array | null;
  /** Backup codes that were not used. */
  readonly codesLeft: number;
}

export function isOn({ user }: Account): boolean {
  return user.twoFactorEnabled === 1;
}

/** Secrets that the person may see now. */
export interface SetUp {
  /** The secret in Base32. */
  readonly key: string;
  /** The address that authenticator apps open. */
  readonly uri: string;
  readonly backupCodes: readonly string[];
}

/** The mistake in the field of a form. */
export interface Mistake {
  readonly step: Step;
  /** Message for the top of the page. */
  readonly title: string;
  /** Message for the field. */
  readonly text: string;
}

interface Frame {
  /** The hidden field of every form. */
  readonly protection: string;
  readonly basePath: string;
  readonly mistake: Mistake | null;
}

export function factorParts(account: Account, setUp: SetUp | null, frame: Frame): readonly string[] {
  const parts = isOn(account)
    ? onParts(account, frame)
    : setUp === null
      ? offParts(account, frame)
      : setUpParts(account, setUp, frame);
  return [...parts, links([[`${frame.basePath}${ACCOUNT_PATH}`, 'Back to your account']])];
}

export function renewedParts(backupCodes: readonly string[], basePath: string): readonly string[] {
  return [
    notice('Your new backup codes are made. The old ones do not work any more.'),
    ...codeParts(backupCodes),
    links([[`${basePath}${SECOND_FACTOR_PATH}`, 'I have kept them']]),
  ];
}

function offParts(account: Account, frame: Frame): readonly string[] {
  const isBegun = account.secret !== null;
  return [
    `<p>The second factor of ${escapeHtml(account.user.email)} is <strong>off</strong>: whoever has the password can log in.</p>`,
    '<p>When it is on, a login also needs a code of an authenticator app, such as the one on your phone. The app shows a new code every 30 seconds.</p>',
    ...(isBegun
      ? [
          '<p>You have begun to set it up. If your app has the key, enter its code. If you did not keep the backup codes, make new ones afterwards.</p>',
          codeForm(account, frame, []),
          '<h2>Or begin again</h2>',
          '<p>You get another key and other backup codes. Delete the entry that your app has now.</p>',
        ]
      : []),
    passwordForm(account, frame, 'begin', {
      label: 'Your password',
      ...(isBegun ? { submit: 'Begin again', look: 'plain' } : { submit: 'Set it up', look: 'primary' }),
    }),
  ];
}

function setUpParts(account: Account, setUp: SetUp, frame: Frame): readonly string[] {
  const { key, uri, backupCodes } = setUp;
  return [
    '<h2>1. Put the key into your app</h2>',
    `<p>In the authenticator app, add an account for ${escapeHtml(account.user.email)} and choose to type its key. Spaces do not matter:</p>
<pre><code id="key">${grouped(key)}</code></pre>
<p>Is the app on this device? Then <a href="${escapeHtml(uri)}">open the key in the app</a>.</p>`,
    '<h2>2. Keep the backup codes</h2>',
    ...codeParts(backupCodes),
    '<h2>3. Enter the first code</h2>',
    '<p>This turns the second factor on, and ends all other sessions of your account.</p>',
    codeForm(account, frame, [hidden('key', key), hidden('backupCodes', backupCodes.join(' '))]),
  ];
}

function codeParts(backupCodes: readonly string[]): readonly string[] {
  return [
    '<p>When you do not have the app, a backup code replaces its code. Each one works once. <strong>They are shown only this once</strong>: print this page, or copy them to a safe place.</p>',
    `<pre><code>${backupCodes.map(escapeHtml).join('\n')}</code></pre>`,
  ];
}

function onParts(account: Account, frame: Frame): readonly string[] {
  return [
    `<p>The second factor of ${escapeHtml(account.user.email)} is <strong>on</strong>: every login needs a code of the authenticator app, or a backup code.</p>`,
    '<h2>Backup codes</h2>',
    `<p>${account.codesLeft} of your backup codes are left. New ones replace them.</p>`,
    passwordForm(account, frame, 'renew', {
      label: 'Your password, to make new codes',
      submit: 'Make new backup codes',
      look: 'plain',
    }),
    '<h2>Turn it off</h2>',
    '<p>Then the password alone is enough again. To use another app, turn it off and set it up anew.</p>',
    passwordForm(account, frame, 'disable', {
      label: 'Your password, to turn it off',
      submit: 'Turn off the second factor',
      look: 'danger',
    }),
  ];
}

/** A page may have two of these forms, so that their labels differ. */
interface Look {
  readonly label: string;
  readonly submit: string;
  readonly look: 'primary' | 'plain' | 'danger';
}

function passwordForm(account: Account, frame: Frame, step: Step, { label, submit, look }: Look): string {
  const password = field({
    name: 'password',
    id: step === 'begin' ? 'password' : `${step}-password`,
    label,
    type: 'password',
    autocomplete: 'current-password',
    error: mistakeIn(frame, step),
  });
  return form(actionOf(frame), [...hiddenFields(account, frame, step), password], submit, look);
}

function codeForm(account: Account, frame: Frame, more: readonly string[]): string {
  const code = field({
    name: 'code',
    label: 'Code of the authenticator app',
    type: 'text',
    autocomplete: 'one-time-code',
    inputMode: 'numeric',
    error: mistakeIn(frame, 'confirm'),
  });
  return form(actionOf(frame), [...hiddenFields(account, frame, 'confirm'), ...more, code], 'Turn it on');
}

function actionOf({ basePath }: Frame): string {
  return `${basePath}${SECOND_FACTOR_PATH}`;
}

/**
 * Returns the hidden fields of a form. They name the account, because another person may log in before the form is
 * sent.
 */
function hiddenFields({ user }: Account, { protection }: Frame, step: Step): readonly string[] {
  return [protection, hidden('step', step), hidden('userId', user.id)];
}

function mistakeIn({ mistake }: Frame, step: Step): string | undefined {
  return mistake?.step === step ? mistake.text : undefined;
}

function grouped(key: string): string {
  return (key.match(/.{1,4}/g) ?? []).join(' ');
}
