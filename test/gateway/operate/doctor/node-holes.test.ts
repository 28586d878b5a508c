/** Which versions of Node.js have known security holes. */
import t from 'tap';
import { isBefore, nodeHole } from '#gateway/operate/doctor/node-holes.ts';

t.test('versions with holes are named, with what to use instead', async (t) => {
  for (const version of ['24.7.0', '24.22.2', '25.9.0', '26.10.0', '26.12.1', '26.13.0'])
    t.match(nodeHole(version), {
      message: `Node.js ${version} has known security holes`,
      fix: /26\.13\.1 .*24\.22\.3/,
    });
  for (const version of ['24.22.3', '24.23.0', '26.13.1', '26.14.0', '27.0.0', '100.0.0'])
    t.equal(nodeHole(version), null, version);
});

t.test('versions are compared as numbers, part by part', async (t) => {
  t.ok(isBefore('9.12.0', [10]) && isBefore('24.6.9', [24, 7]) && isBefore('24', [24, 7]));
  t.notOk(isBefore('24.7.0', [24, 7]) || isBefore('24.10.0', [24, 7]) || isBefore('7.0.15', [6, 2]));
});
