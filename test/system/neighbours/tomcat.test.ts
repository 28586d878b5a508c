/** Tomcat: folders and contexts without their slash, path parameters, lists of folders. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, askForPage, copyProgram, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const HOME = '/usr/share/tomcat10';
const folder = temporaryFolder(t);
for (const name of [
  'conf',
  'logs',
  'temp',
  'work',
  'webapps/app/WEB-INF',
  'webapps/app/docs',
  'webapps/ROOT',
])
  mkdirSync(join(folder, name), { recursive: true });
cpSync('/etc/tomcat10/web.xml', join(folder, 'conf/web.xml'));
writeFileSync(join(folder, 'webapps/app/index.html'), '<h1>App</h1>\n');
writeFileSync(join(folder, 'webapps/app/docs/50%de.txt'), 'half\n');
copyProgram('tomcat-web.xml', join(folder, 'webapps/app/WEB-INF/web.xml'));
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => {
    writeFileSync(
      join(folder, 'conf/server.xml'),
      `<Server port="-1"><Service name="Catalina">
  <Connector port="${port}" address="127.0.0.1" maxThreads="8" minSpareThreads="1" />
  <Engine name="Catalina" defaultHost="localhost" startStopThreads="1">
    <Host name="localhost" appBase="webapps" autoDeploy="false" />
  </Engine>
</Service></Server>
`,
    );
    const classes = ['bootstrap', 'tomcat-juli'].map((name) => `${HOME}/bin/${name}.jar`).join(':');
    const properties = [`-Dcatalina.home=${HOME}`, `-Dcatalina.base=${folder}`, '-Djava.io.tmpdir=temp'];
    const small = ['-Xshare:auto', '-XX:TieredStopAtLevel=1', '-Xmx128m'];
    return [
      'java',
      ...small,
      ...properties,
      '-cp',
      classes,
      'org.apache.catalina.startup.Bootstrap',
      'start',
    ];
  },
});

askForPage(t, neighbour, 'Tomcat');

t.test('a file is put, read and deleted', async (t) => {
  await neighbour.same(t, 'statuses', async (way) => {
    const body = Buffer.alloc(200_000, 'x');
    const put = await ask(way, '/app/docs/new.bin', { method: 'PUT', body, pieces: 50_000 });
    const read = await ask(way, '/app/docs/new.bin');
    const { status } = await ask(way, '/app/docs/new.bin', { method: 'DELETE' });
    t.strictSame([put.status, read.status, read.body.length, status], [201, 200, 200_000, 204]);
  });
});
