/**
 * Holds the conversations of this folder with the API, one new API for each. docs/api.md leads to them. Routes of
 * clients are asked without a key, all others with that of the first workspace, unless the request has one. A header without
 * a value is not sent.
 *
 * `mail` in a reply stands for the mails that the request caused. `$mail1` is the token in the link of the first mail.
 * `text` stands for the body as it is, for replies that are not JSON.
 *
 * From the beginning, the workspace has the files of `STORED`, each with the digits of CONTENT unless it is empty.
 * Names from the beginning: `$workspace` and `$key`; `$other`, another workspace of the organization; `$both`, a key that
 * manages both; `$writer` and `$reader`, which only write or read the first; `$visitor`, one that only reads the other;
 * `$none`, one without a workspace.
 */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';
import { apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { addFileRow, receiveFile } from '#test/support/files.ts';
import { mailsOf } from '#test/support/mails.ts';
import { projectRoot } from '#test/support/process.ts';
import { difference, filled, type Names, parsePattern, readConversations } from './document.ts';

const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  'inside.example': ['93.184.215.14', '10.0.0.1'],
  'nowhere.example': [],
};
const CONTENT = '1234567890';
const STORED = [
  'public/ä photo--fid--0b9c7f3e-5f0a-4a4e-9d3e-000000000000.png',
  ...['a.pdf', 'a.txt', 'a.docx', 'a.MP4', 'a.html', 'a.svg', 'empty.txt'].map((name) => `public/${name}`),
  'private/surveys/s1/elements/q1/a.png',
];

for (const file of globSync('test/conversations/*.md', { cwd: projectRoot }).sort()) {
  t.test(basename(file, '.md'), async (t) => {
    for (const { env, exchanges } of readConversations(readFileSync(join(projectRoot, file), 'utf8'))) {
      await t.test(`from line ${exchanges[0]?.line}`, async (t) => {
        const api = await startApi(t, {
          env,
          resolve: async (name) => {
            const addresses = ADDRESSES[name] ?? ['93.184.215.14'];
            if (addresses.length === 0) throw new Error('ENOTFOUND');
            return [...addresses];
          },
        });
        await api.addWorkspace('other');
        for (const name of STORED) {
          await addFileRow(api, `${workspaceId}/${name}`);
          await receiveFile(api, `${workspaceId}/${name}`, name.includes('empty') ? '' : CONTENT);
        }
        const names: Names = new Map<string, unknown>([
          ['workspace', workspaceId],
          ['key', apiKey],
          ['other', 'other'],
          ['both', await api.addKey({ [workspaceId]: 'manage', other: 'manage' })],
          ['writer', await api.addKey({ [workspaceId]: 'write' })],
          ['reader', await api.addKey({ [workspaceId]: 'read' })],
          ['visitor', await api.addKey({ other: 'read' })],
          ['none', await api.addKey({})],
        ]);
        const seen = new Set<string>();
        for (const { title, line, laterMs, request, reply } of exchanges) {
          api.advance(laterMs);
          const [method = '', target = ''] = filled(request.first, names).split(' ');
          const given = request.headers.map(([name, value]) => [name, filled(value, names)] as const);
          const key = target.includes('/client/') ? [] : ([['x-api-key', apiKey]] as const);
          const sent = [...new Map([...key, ...given])].filter(([, value]) => value !== '');
          const headers = Object.fromEntries(sent);
          const body = request.body === '' ? undefined : filled(request.body, names);
          const got = await api.client(method as 'GET', target, body, headers);
          const fresh = (await mailsOf(api)).filter(({ body }) => !seen.has(body));
          for (const { body, token } of fresh) names.set(`mail${seen.add(body).size}`, token);
          const mail = fresh.map(({ kind, recipient }) => `${kind} to ${recipient}`).join(', ') || 'none';
          const gotHeaders: Readonly<Record<string, unknown>> = { ...got.headers, mail, text: got.text };
          const problems = [
            difference(Number(reply.first), got.status, names, 'the status'),
            ...reply.headers.map(([name, value]) => difference(value, gotHeaders[name], names, name)),
            reply.body === '' ? null : difference(parsePattern(reply.body), got.json, names),
          ].filter((one) => one !== null);
          t.strictSame(
            problems,
            [],
            `${title} (${file}:${line})${problems.length > 0 ? `: ${got.text}` : ''}`,
          );
        }
      });
    }
  });
}
