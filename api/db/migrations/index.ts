/** All migrations in order. Never edit a released migration; add the next one. */
import { init } from './001-init.ts';
import { contactAttributeList } from './002-contact-attribute-list.ts';
import { accounts } from './003-accounts.ts';
import { events } from './004-events.ts';
import { files } from './005-files.ts';
import { lifecycles } from './006-lifecycles.ts';
import { people } from './007-people.ts';
import { respondents } from './010-respondents.ts';
import { uniqueValues } from './011-unique-values.ts';
import { changeTriggers, processes } from './020-processes.ts';
import { digests } from './021-digests.ts';
import { countdowns } from './022-countdowns.ts';
import { keysForAllWorkspaces } from './023-keys-for-all-workspaces.ts';
import { signUps } from './024-sign-ups.ts';
import { twoFactor } from './025-two-factor.ts';
import { eventsOfResponses } from './027-events-of-responses.ts';
import { noSecondFactor } from './028-no-second-factor.ts';
import { responsesByChange } from './030-responses-by-change.ts';
import { deletions } from './034-deletions.ts';
import { countTriggers, responseCounts } from './035-response-counts.ts';

interface Migration {
  readonly name: string;
  /** Tables of removed features, see removed-tables.ts. They are dropped before `statements`, in this order. */
  readonly drops?: readonly string[];
  /** Run in order in one transaction. Both databases understand them after `forPostgres`. */
  readonly statements: readonly string[];
  /** Run after `statements`, for syntax that the databases do not share, such as triggers. */
  readonly only?: { readonly sqlite: readonly string[]; readonly postgres: readonly string[] };
}

export const migrations: readonly Migration[] = [
  { name: '001-init', statements: init },
  { name: '002-contact-attribute-list', statements: contactAttributeList },
  { name: '003-accounts', statements: accounts },
  { name: '004-events', statements: events },
  { name: '005-files', statements: files },
  { name: '006-lifecycles', statements: lifecycles },
  { name: '007-people', statements: people },
  { name: '010-respondents', statements: respondents },
  { name: '011-unique-values', statements: uniqueValues },
  { name: '020-processes', statements: processes, only: changeTriggers },
  { name: '021-digests', statements: [], only: digests },
  { name: '022-countdowns', statements: countdowns },
  { name: '023-keys-for-all-workspaces', statements: keysForAllWorkspaces },
  { name: '024-sign-ups', statements: signUps },
  { name: '025-two-factor', statements: twoFactor },
  { name: '026-organization-write', statements: [] },
  { name: '027-events-of-responses', statements: eventsOfResponses },
  { name: '028-no-second-factor', drops: ['backupCodes', 'twoFactors'], statements: noSecondFactor },
  {
    name: '029-no-teams',
    // The links in these mails lead nowhere any more.
    statements: [`delete from "mailOutbox" where "kind" = 'invite'`],
    drops: ['teamWorkspaces', 'teamMembers', 'teams', 'invites'],
  },
  { name: '030-responses-by-change', statements: responsesByChange },
  { name: '031-no-notes', drops: ['responseNotes'], statements: [] },
  { name: '032-no-tags', drops: ['responseTags', 'tags'], statements: [] },
  {
    name: '033-no-archive',
    statements: [
      `update "surveys" set "status" = 'completed' where "archivedAt" is not null`,
      'alter table "surveys" drop column "archivedAt"',
    ],
  },
  { name: '034-deletions', statements: deletions },
  { name: '035-response-counts', statements: responseCounts, only: countTriggers },
];
