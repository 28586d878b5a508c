/** Radicale, a server for calendars (CalDAV). */
import { join } from 'node:path';
import t from 'tap';
import { ask, askForPage, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [
    'radicale',
    ...['--server-hosts', `127.0.0.1:${port}`, '--auth-type', 'none'],
    ...['--storage-filesystem-folder', join(folder, 'collections')],
  ],
});
const EVENT = [
  'BEGIN:VCALENDAR',
  'VERSION:2.0',
  'PRODID:x',
  'BEGIN:VEVENT',
  'UID:one',
  'DTSTAMP:20261128T100000Z',
]
  .concat('DTSTART:20261128T100000Z', 'SUMMARY:Tea', 'END:VEVENT', 'END:VCALENDAR', '')
  .join('\r\n');
const PROPFIND =
  '<propfind xmlns="DAV:"><prop><resourcetype/><getetag/><current-user-principal/></prop></propfind>';
const QUERY =
  '<C:calendar-query xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><prop><getetag/><C:calendar-data/></prop>' +
  '<C:filter><C:comp-filter name="VCALENDAR"/></C:filter></C:calendar-query>';

t.test('a calendar, as a calendar program makes, fills and reads it', async (t) => {
  const statuses = await neighbour.same(t, 'every reply', async (way) => {
    const replies = [];
    for (const [method, path, body, headers] of [
      ['PROPFIND', '/', PROPFIND, { depth: '0' }],
      ['PROPFIND', '/user/', PROPFIND, { depth: '1' }],
      ['MKCALENDAR', '/user/my%20calendar/', '', {}],
      ['MKCALENDAR', '/user/other/', '', {}],
      ['PUT', '/user/my%20calendar/one%40example.ics', EVENT, { 'content-type': 'text/calendar' }],
      [
        'PUT',
        '/user/my%20calendar/one%40example.ics',
        EVENT,
        { 'content-type': 'text/calendar', 'if-none-match': '*' },
      ],
      ['REPORT', '/user/my%20calendar/', QUERY, { depth: '1' }],
      ['PROPFIND', '/user/my%20calendar/', PROPFIND, { depth: '1' }],
      ['GET', '/user/my%20calendar/one%40example.ics', undefined, {}],
      [
        'MOVE',
        '/user/my%20calendar/one%40example.ics',
        undefined,
        { destination: `${way.origin}/user/other/two.ics` },
      ],
      ['GET', '/user/other/', undefined, {}],
      ['DELETE', '/user/other/', undefined, {}],
      ['DELETE', '/user/my%20calendar/', undefined, {}],
    ] as const) {
      const authorization = `Basic ${btoa('user:any')}`;
      replies.push(await ask(way, path, { method, body, headers: { authorization, ...headers } }));
    }
    return replies.map(({ headers: { 'last-modified': _, ...headers }, ...reply }) => ({
      ...reply,
      headers,
    }));
  });
  t.strictSame(
    statuses.map(({ status }) => status),
    [207, 207, 201, 201, 201, 412, 207, 207, 200, 201, 200, 200, 200],
  );
});

askForPage(t, neighbour, 'Radicale');
