/** Node-RED: its editor, its API, a flow that answers requests, and the WebSocket of the editor. */
import { join } from 'node:path';
import t from 'tap';
import { folderWith } from '#test/runner/npm-programs.ts';
import { ask, askForPage, copyProgram, startNeighbour } from '#test/support/neighbour.ts';
import { until } from '#test/support/until.ts';

const folder = folderWith(t, 'node-red');
copyProgram('node-red-settings.cjs', join(folder, 'settings.js'));
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [
    process.execPath,
    'node_modules/node-red/red.js',
    '-u',
    folder,
    '-s',
    'settings.js',
    '-p',
    String(port),
  ],
});
await neighbour.application.until(/Started flows/);

const startsOf = (): number => neighbour.application.output().split('Started flows').length;

/** Replies to /items/NAME with the name in capitals. */
const FLOW = [
  { id: 'a', type: 'tab', label: 'Flow' },
  { id: 'b', type: 'http in', z: 'a', url: '/items/:name', method: 'post', wires: [['c']] },
  {
    id: 'c',
    type: 'function',
    z: 'a',
    func: 'msg.payload = [msg.req.params.name, msg.payload]; return msg;',
    outputs: 1,
    wires: [['d']],
  },
  { id: 'd', type: 'http response', z: 'a', statusCode: '201', wires: [] },
];

askForPage(t, neighbour, 'Node-RED');

t.test('a flow is deployed, and answers', async (t) => {
  await neighbour.same(t, 'its replies', async (way) => {
    const headers = { 'content-type': 'application/json' };
    const starts = startsOf();
    const deployed = await ask(way, '/admin/flows', { method: 'POST', headers, body: JSON.stringify(FLOW) });
    t.equal(deployed.status, 204);
    await until(() => startsOf() > starts, 'the flow is started', neighbour.application);
    const replies = [];
    for (const name of ['plain', 'a%2Fb', '50%25', 'G%C3%BCnter'])
      replies.push(await ask(way, `/items/${name}`, { method: 'POST', headers, body: '{"a":[1,2]}' }));
    return replies;
  });
});

t.test('the WebSocket of the editor', async (t) => {
  await neighbour.same(t, 'its first message', ({ host }) => {
    const socket = new WebSocket(`ws://${host}/admin/comms`);
    return new Promise((resolve, reject) => {
      socket.onerror = () => reject(new Error('no connection'));
      socket.onopen = () => socket.send(JSON.stringify({ subscribe: 'notification/#' }));
      socket.onmessage = ({ data }) => {
        socket.close();
        resolve(JSON.parse(data)[0]?.topic);
      };
    });
  });
});
